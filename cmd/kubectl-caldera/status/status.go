// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status is the command "kubectl caldera status".
package status

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

type flags struct {
	*leader.Flags
	output *leader.Output
}

// New returns the command.
func New() *cobra.Command {
	f := flags{Flags: leader.NewFlags(), output: leader.NewOutput()}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which scheduler leads, what waits, and which queues are left out",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.With(cmd, f.show) },
	}
	f.Add(cmd, false)
	f.output.Add(cmd, "is the same")
	return cmd
}

func (f *flags) show(ctx context.Context, client *leader.Client) error {
	cluster := &v1alpha1.ClusterView{}
	if err := client.Get(ctx, v1alpha1.ClusterViews, "", v1alpha1.ClusterName, cluster); err != nil {
		return err
	}
	return f.output.Write(client.Streams.Out, cluster, func(out io.Writer) error { return write(out, &cluster.Status) })
}

func write(out io.Writer, s *v1alpha1.ClusterViewStatus) error {
	evictions := "none"
	if e := s.Evictions; e.Decisions > 0 {
		evictions = fmt.Sprintf("%s by %s; %d for jobs that did not start then, %d in circles",
			leader.Count(int(e.Evicted), "pod", "pods"), leader.Count(int(e.Decisions), "decision", "decisions"), e.Wasted, e.Cycles)
	}
	reasons := make([]string, len(s.Reasons))
	for i, r := range s.Reasons {
		reasons[i] = fmt.Sprintf("%d %s", r.Jobs, r.Type)
	}
	waiting := leader.Count(int(s.Waiting), "job", "jobs")
	if len(reasons) > 0 {
		waiting += ": " + strings.Join(reasons, ", ")
	}
	rows := [][]string{
		{"Leader", fmt.Sprintf("%s, for %s", s.Leader.Identity, leader.Age(&s.Leader.Since, s.AsOf.Time))},
		{"Version", fmt.Sprintf("%s, with Kubernetes %s", s.Leader.Version, s.Leader.KubernetesVersion)},
		{"Schedules", strings.Join(s.Leader.Profiles, ", ")},
		{"Nodes", fmt.Sprint(s.Nodes)},
		{"Waiting", waiting},
		{"Evicted", evictions},
	}
	if len(s.LeftOut) == 0 {
		rows = append(rows, []string{"Left out", "no queue"})
	}
	for i, q := range s.LeftOut {
		label := "Left out"
		if i > 0 {
			label = " "
		}
		rows = append(rows, []string{label, fmt.Sprintf("queue %s: %s", q.Name, q.Reason.Message)})
	}
	return leader.Columns(out, "", rows)
}
