// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package schedulerprocess

import (
	"fmt"
	"net"
	"net/http"

	"k8s.io/client-go/rest"
)

// FreePort is a port of this machine on which nobody listens.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	defer listener.Close() //nolint:errcheck // only its number is of use
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// Endpoints are what a scheduler serves on a port of this machine: where, and a client that has the cluster's credentials.
func Endpoints(port int, cluster *rest.Config) (*http.Client, string, error) {
	config := rest.CopyConfig(cluster)
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true} // the scheduler's certificate is its own
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, "", fmt.Errorf("building a client for the scheduler's endpoints: %w", err)
	}
	return client, fmt.Sprintf("https://127.0.0.1:%d", port), nil
}
