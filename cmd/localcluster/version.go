// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"
)

// kubernetesVersion is the version the API server will report. The linker sets it; a binary built without the flags
// would call itself v0.0.0-master and clients would refuse it, so such a binary is refused here.
func kubernetesVersion() (string, error) {
	linked := version.Get().GitVersion
	required := requiredVersion()
	if required != "" && linked != required {
		return "", fmt.Errorf("this binary was linked as Kubernetes %s but contains %s; build it with `make build`, "+
			"or with the flags of pkg/localcluster.LDFlags", linked, required)
	}
	return linked, nil
}

// requiredVersion is the version of the Kubernetes module compiled in, or "" if the build recorded none.
func requiredVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/kubernetes" {
			return module.Version
		}
	}
	return ""
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the Kubernetes version of the control plane",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := kubernetesVersion()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), v)
			return err
		},
	}
}
