// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig that has the rights of a service account, which must exist, and of nobody else. They end after a day.
func (c *Cluster) WriteKubeconfig(ctx context.Context, namespace, account, file string) error {
	own := c.RESTConfig()
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking for a token of service account %s/%s: %w", namespace, account, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: own.Host, CertificateAuthority: own.CAFile, CertificateAuthorityData: own.CAData}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: account}
	config.CurrentContext = "local"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("writing the kubeconfig of service account %s/%s: %w", namespace, account, err)
	}
	return nil
}
