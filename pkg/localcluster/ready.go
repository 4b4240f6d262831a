// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

// Ready is the line of JSON that `localcluster up --output json` prints on stdout when the cluster serves.
type Ready struct {
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Server is the URL of the API server.
	Server string `json:"server"`
	// Dir is the data directory.
	Dir string `json:"dir"`
	// Log is the path of the log file.
	Log string `json:"log"`
	// Version is the version of Kubernetes.
	Version string `json:"version"`
	// Seconds is the time from process start to readiness.
	Seconds float64 `json:"seconds"`
	// Nodes and CRDs count what was asked for.
	Nodes int `json:"nodes"`
	CRDs  int `json:"crds"`
}
