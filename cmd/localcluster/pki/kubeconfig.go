// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes the administrator's kubeconfig, readable by the owner only. It refers to no other file, so it
// can be copied elsewhere.
func (f Files) WriteKubeconfig(path, server string) error {
	ca, caErr := os.ReadFile(f.CACert)
	tokens, tokenErr := os.ReadFile(f.Tokens)
	if err := errors.Join(caErr, tokenErr); err != nil {
		return fmt.Errorf("writing kubeconfig: %w", err)
	}
	token, _, _ := bytes.Cut(tokens, []byte(","))
	config := clientcmdapi.NewConfig()
	config.Clusters["localcluster"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: string(token)}
	config.Contexts["localcluster"] = &clientcmdapi.Context{Cluster: "localcluster", AuthInfo: "admin"}
	config.CurrentContext = "localcluster"
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding kubeconfig: %w", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("writing kubeconfig: %w", err)
	}
	return os.Chmod(path, 0o600) // WriteFile keeps the mode of a file that exists
}
