// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes the administrator's kubeconfig, readable by the owner only. Certificates are embedded, so the
// file can be copied elsewhere.
func (f Files) WriteKubeconfig(path, server string) error {
	content := map[string][]byte{}
	for _, file := range []string{f.CACert, f.AdminCert, f.AdminKey} {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("writing kubeconfig: %w", err)
		}
		content[file] = data
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["localcluster"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: content[f.CACert]}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: content[f.AdminCert], ClientKeyData: content[f.AdminKey],
	}
	config.Contexts["localcluster"] = &clientcmdapi.Context{Cluster: "localcluster", AuthInfo: "admin"}
	config.CurrentContext = "localcluster"
	if err := clientcmd.WriteToFile(*config, path); err != nil { // creates the file with mode 0600
		return fmt.Errorf("writing kubeconfig: %w", err)
	}
	return os.Chmod(path, 0o600)
}
