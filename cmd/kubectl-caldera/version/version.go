// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version is the command "kubectl caldera version".
package version

import (
	"fmt"

	"github.com/spf13/cobra"
	kubernetes "k8s.io/component-base/version"

	"github.com/caldera-scheduler/caldera/pkg/version"
)

// New returns the command.
func New() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this command; that of the scheduler is in status",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "caldera %s, with Kubernetes %s\n", version.Get(), kubernetes.Get().GitVersion)
			return err
		},
	}
}
