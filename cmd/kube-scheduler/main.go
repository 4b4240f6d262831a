package main

import (
	"fmt"

	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "volcano.sh/apis/pkg/client/clientset/versioned"
	_ "volcano.sh/apis/pkg/client/informers/externalversions"
	_ "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"
	_ "sigs.k8s.io/scheduler-plugins/pkg/generated/informers/externalversions"
)

func main() { fmt.Println(app.NewSchedulerCommand().Name()) }
