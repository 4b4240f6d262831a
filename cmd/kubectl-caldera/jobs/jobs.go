// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobs is the command "kubectl caldera jobs". Package suspend has the commands below it.
package jobs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/jobs/suspend"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

type flags struct {
	*leader.Flags
	output             *leader.Output
	queue, why, labels string
	waiting            bool
	watch              leader.Watch
}

// New returns the command.
func New() *cobra.Command {
	f := flags{Flags: leader.NewFlags(), output: leader.NewOutput()}
	cmd := &cobra.Command{
		Use:     "jobs",
		Aliases: []string{"j"},
		Short:   "Show which jobs run and which wait, in their order, and why",
		Long: `Show which jobs run and which wait, in their order, and why.

A job is a PodGroup with its pods, a controller that makes a gang of its pods, or a pod on its own. Jobs that wait come first, queue by
queue in the order of their turns. "kubectl caldera explain JOB" says more of one; "suspend" and "resume" stop one for a while.`,
		Example: `  # Those of my namespace
  kubectl caldera jobs

  # All that wait in queue research
  kubectl caldera jobs -A -q research --waiting

  # All that wait for room on nodes
  kubectl caldera jobs -A --why NotEnoughResources`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.With(cmd, f.show) },
	}
	f.Add(cmd, true)
	f.output.Add(cmd, "shows what waits for what")
	set := cmd.Flags()
	set.StringVarP(&f.queue, "queue", "q", "", "Show only jobs of this queue.")
	set.StringVar(&f.why, "why", "", "Show only jobs that wait for this reason, like QueueFull.")
	set.BoolVar(&f.waiting, "waiting", false, "Show only jobs that wait.")
	set.StringVarP(&f.labels, "selector", "l", "", "Show only jobs with these labels, like app=train.")
	f.watch.Add(cmd)
	cmd.AddCommand(suspend.New(), suspend.NewResume())
	return cmd
}

func (f *flags) show(ctx context.Context, client *leader.Client) error {
	namespace, err := f.Scope()
	if err != nil {
		return err
	}
	o := metav1.ListOptions{FieldSelector: f.fields(), LabelSelector: f.labels}
	return f.watch.Repeat(ctx, client.Streams.Out, func(out io.Writer) error {
		list := &v1alpha1.JobViewList{}
		if err := client.List(ctx, v1alpha1.JobViews, namespace, o, list); err != nil {
			return err
		}
		InOrder(list.Items)
		return f.output.Write(out, list, func(out io.Writer) error {
			if len(list.Items) == 0 {
				_, err := fmt.Fprintln(out, "There are no such jobs.")
				return err
			}
			return Write(out, list.Items, f.AllNamespaces, f.output.Wide())
		})
	})
}

// fields are what jobs are selected by.
func (f *flags) fields() string {
	set := fields.Set{}
	if f.queue != "" {
		set["status.queue"] = f.queue
	}
	if f.why != "" {
		set["status.reason.type"] = f.why
	}
	if f.waiting {
		set["status.waiting"] = "true"
	}
	return set.AsSelector().String()
}

// InOrder has those that wait first, in the order of their turns, then the others by age.
func InOrder(jobs []v1alpha1.JobView) {
	slices.SortStableFunc(jobs, func(a, b v1alpha1.JobView) int {
		x, y := a.Status.Position, b.Status.Position
		switch {
		case x != nil && y != nil:
			return cmp.Or(cmp.Compare(x.Queue, y.Queue), cmp.Compare(x.InQueue, y.InQueue))
		case x != nil:
			return -1
		case y != nil:
			return 1
		}
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
}

// Write writes a table of jobs, with their namespaces if these are several.
func Write(out io.Writer, jobs []v1alpha1.JobView, namespaces, wide bool) error {
	head := []string{"JOB", "QUEUE", "PLACE", "PHASE", "PODS", "WAITS", "REASON"}
	if namespaces {
		head = append([]string{"NAMESPACE"}, head...)
	}
	if wide {
		head = append(head, "PRIORITY", "REFUSED", "MESSAGE")
	}
	table := [][]string{head}
	for i := range jobs {
		table = append(table, row(&jobs[i], namespaces, wide))
	}
	return leader.Columns(out, "", table)
}

func row(j *v1alpha1.JobView, namespaces, wide bool) []string {
	s := &j.Status
	place, reason, message := "", "", ""
	if p := s.Position; p != nil {
		place = fmt.Sprintf("%d/%d", p.InQueue, p.OfQueue)
	}
	if s.Reason != nil {
		reason, message = s.Reason.Type, s.Reason.Message
	}
	cells := []string{j.Name, s.Queue, place, string(s.Phase), Pods(s), leader.Age(s.WaitingSince, s.AsOf.Time), reason}
	if namespaces {
		cells = append([]string{j.Namespace}, cells...)
	}
	if wide {
		cells = append(cells, strconv.Itoa(int(s.Priority)), strconv.Itoa(int(s.Refused)), message)
	}
	return cells
}

// Pods is how many pods of a job have nodes or have succeeded, of how many that exist or start together.
func Pods(s *v1alpha1.JobViewStatus) string {
	return fmt.Sprintf("%d/%d", s.Pods.Bound+s.Pods.Running+s.Pods.Succeeded, max(s.MinMember, s.Pods.Total))
}
