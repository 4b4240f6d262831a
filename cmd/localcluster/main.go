package main

import (
	"fmt"

	_ "go.etcd.io/etcd/server/v3/embed"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	_ "sigs.k8s.io/kwok/pkg/kwok/controllers"
	_ "sigs.k8s.io/kwok/pkg/kwok/cmd"
)

func main() {
	fmt.Println(apiserver.NewAPIServerCommand().Name(), kcm.NewControllerManagerCommand().Name())
}
