// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot is the command "kubectl caldera snapshot".
package snapshot

import (
	"github.com/spf13/cobra"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/simulate/live"
)

// New returns the command.
func New() *cobra.Command {
	f := leader.NewFlags()
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Write down all that the scheduler decides by, as one file that simulate reads",
		Long: `Write down all that the scheduler decides by, as one file that simulate reads.

It has the nodes, queues, PodGroups, pods and whatever else scheduling looks at, of all namespaces. Of pods it has neither commands nor
variables, so that no passwords are in it; names, labels and annotations are.`,
		Example: `  kubectl caldera snapshot > cluster.yaml
  kubectl caldera simulate cluster.yaml --drain node-17`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := f.ToRESTConfig()
			if err != nil {
				return err
			}
			objects, err := live.Read(cmd.Context(), config)
			if err != nil {
				return err
			}
			return live.Write(cmd.OutOrStdout(), objects)
		},
	}
	f.AddFlags(cmd.Flags())
	return cmd
}
