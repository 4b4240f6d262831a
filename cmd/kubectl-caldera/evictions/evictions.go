// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evictions is the command "kubectl caldera evictions".
package evictions

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// flags are the command's flags.
type flags struct {
	*leader.Flags
	output *leader.Output
	queue  string
}

// New returns the command.
func New() *cobra.Command {
	f := flags{Flags: leader.NewFlags(), output: leader.NewOutput()}
	cmd := &cobra.Command{
		Use:   "evictions [JOB]",
		Short: "Show which pods were evicted, for whom and by which rule",
		Long: `Show which pods were evicted, for whom and by which rule, and what came of it.

The scheduler remembers its last decisions to evict. Of pods in other namespaces it names none, unless those of all namespaces are
asked for.

JOB is the name of a PodGroup, or of a pod without one, or NAMESPACE/NAME: the decisions for that job and those that
took from it are shown, with every victim and why other pods were kept.`,
		Example: `  # The decisions that concern my namespace
  kubectl caldera evictions

  # What was evicted for a job, or taken from it
  kubectl caldera evictions ml/train

  # What queue research lost or got, for a script
  kubectl caldera evictions -A --queue research -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.With(cmd, func(ctx context.Context, client *leader.Client) error { return f.show(ctx, client, args) })
		},
	}
	f.Add(cmd, true)
	f.output.Add(cmd, "lists the victims")
	cmd.Flags().StringVar(&f.queue, "queue", "", "Show only decisions for jobs of this queue, or with victims in it.")
	return cmd
}

// show asks the scheduler and writes what it says.
func (f *flags) show(ctx context.Context, client *leader.Client, args []string) error {
	namespace, err := f.Scope()
	if err != nil {
		return err
	}
	keep := selection{queue: f.queue}
	if len(args) == 1 {
		if keep.namespace, keep.name, err = f.Job(args[0]); err != nil {
			return err
		}
		if namespace != "" {
			namespace = keep.namespace
		}
	}
	list := &v1alpha1.EvictionDecisionList{}
	if err := client.List(ctx, v1alpha1.EvictionDecisions, namespace, metav1.ListOptions{}, list); err != nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(d v1alpha1.EvictionDecision) bool { return !keep.matches(&d.Status) })
	return f.output.Write(client.Streams.Out, list, func(out io.Writer) error {
		return write(out, list.Items, keep.name != "" || f.output.Wide(), time.Now())
	})
}

// selection is what a user wants to see; what is empty does not matter.
type selection struct{ namespace, name, queue string }

// matches reports whether a decision concerns the job and the queue, as the taker or as a victim.
func (s selection) matches(d *v1alpha1.EvictionDecisionStatus) bool {
	concerns := func(matches func(*v1alpha1.JobReference) bool) bool {
		return d.Job != nil && matches(d.Job) || slices.ContainsFunc(d.Victims, func(v v1alpha1.EvictionVictim) bool { return matches(&v.Job) })
	}
	return (s.name == "" || concerns(func(j *v1alpha1.JobReference) bool { return j.Namespace == s.namespace && j.Name == s.name })) &&
		(s.queue == "" || concerns(func(j *v1alpha1.JobReference) bool { return j.Queue == s.queue }))
}
