// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain is the command "kubectl caldera explain".
package explain

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/jobs"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/simulate/remedy"
)

type flags struct {
	*leader.Flags
	output *leader.Output
	whatIf bool
	budget time.Duration
}

// New returns the command.
func New() *cobra.Command {
	f := flags{Flags: leader.NewFlags(), output: leader.NewOutput()}
	cmd := &cobra.Command{
		Use:   "explain JOB | order JOB JOB",
		Short: "Show why a job waits, what would have it start, and who goes before it; or which of two jobs goes first, and why",
		Long: `Show why a job waits, what would have it start, and who goes before it.

What would have it start is found out in this process: the objects of the cluster are read, and the real scheduler plans on them in memory,
after one change and another. Whatever is told was seen: the job starts with it, and with one step less it does not. Everything else that
waits is planned, too, so that a node that is added may be taken by another job. This takes the right to read nodes, pods and queues of the
whole cluster; without it, the rest is shown.

JOB is the name of a PodGroup, of a controller that makes a gang of its pods, or of a pod without either. NAMESPACE/NAME names one of
another namespace.

With "order" and two jobs it shows which of them has its turn first. It names the plugin that decides, and the values that it compares. The
scheduler's own plugins compare them in this process, which takes the same rights. The job behind still goes first if there is room only
for that one.`,
		Example: `  kubectl caldera explain train
  kubectl caldera explain ml/train

  # Why is it not my turn?
  kubectl caldera explain order ml/train ml/sweep`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 3 && args[0] == orderWord {
				return nil
			}
			return fmt.Errorf("name one job, or write %q and two jobs, not %q", orderWord, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.With(cmd, func(ctx context.Context, client *leader.Client) error {
				if len(args) == 1 {
					return f.show(ctx, client, args[0])
				}
				return f.order(ctx, client, args[1:])
			})
		},
	}
	f.Add(cmd, false)
	f.output.Add(cmd, "is the same")
	cmd.Flags().BoolVar(&f.whatIf, "what-if", true, "Find out what would have it start.")
	cmd.Flags().DurationVar(&f.budget, "budget", remedy.DefaultBudget, "For how long changes are tried.")
	return cmd
}

func (f *flags) show(ctx context.Context, client *leader.Client, arg string) error {
	namespace, name, err := f.Job(arg)
	if err != nil {
		return err
	}
	job, err := client.Find(ctx, namespace, name)
	if err != nil {
		return err
	}
	if f.whatIf && job.Status.Waiting {
		if job.Status.Explanation, err = WhatIf(ctx, f.Flags, client, job, f.budget); err != nil {
			fmt.Fprintln(client.Streams.ErrOut, Unknown(err))
		}
	}
	return f.output.Write(client.Streams.Out, job, func(out io.Writer) error { return write(out, job) })
}

func write(out io.Writer, job *v1alpha1.JobView) error {
	fmt.Fprintf(out, "%s\n\n", Headline(job))
	var rows [][]string
	for _, fact := range Facts(&job.Status) {
		for i, text := range fact.Texts {
			name := fact.Name
			if i > 0 {
				name = " "
			}
			rows = append(rows, []string{name, text})
		}
	}
	if err := leader.Columns(out, "", rows); err != nil || job.Status.Explanation == nil {
		return err
	}
	return writeExplanation(out, job.Status.Explanation)
}

// Fact is something that is told of a job.
type Fact struct {
	// Name is in capitals.
	Name string
	// Texts are one or more lines.
	Texts []string
}

// Facts are what is told of a job.
func Facts(s *v1alpha1.JobViewStatus) []Fact {
	facts := []Fact{{"PHASE", []string{string(s.Phase)}}, {"PODS", []string{pods(s)}}}
	if s.Reason != nil {
		facts = append(facts, Fact{"WAITS FOR", append([]string{s.Reason.Type}, strings.Split(s.Reason.Message, "; ")...)})
	}
	if p := s.Position; p != nil {
		before := leader.Count(int(p.InQueue-1), "job", "jobs")
		if p.InQueue == 1 {
			before = "no job"
		}
		facts = append(facts, Fact{"BEFORE IT", []string{fmt.Sprintf("%s of its queue, which is %s of %s with jobs that wait",
			before, ordinal(int(p.Queue)), leader.Count(int(p.OfQueues), "queue", "queues"))}})
	}
	if s.Refused > 0 {
		facts = append(facts, Fact{"TURNS", []string{fmt.Sprintf("%d that found no room", s.Refused)}})
	}
	return facts
}

// Headline is a job in one line.
func Headline(job *v1alpha1.JobView) string {
	s := &job.Status
	return fmt.Sprintf("%s %s/%s, queue %s: %s", s.Object.Kind, job.Namespace, s.Object.Name, s.Queue, headline(s))
}

func headline(s *v1alpha1.JobViewStatus) string {
	if !s.Waiting {
		return "does not wait"
	}
	said := "waits " + leader.Age(s.WaitingSince, s.AsOf.Time)
	if p := s.Position; p != nil {
		said += fmt.Sprintf(", %s of %d in its queue", ordinal(int(p.InQueue)), p.OfQueue)
	}
	return said
}

// pods are the pods of a job, and how many start together.
func pods(s *v1alpha1.JobViewStatus) string {
	parts := []string{jobs.Pods(s) + " have nodes"}
	for _, p := range []struct {
		n    int32
		what string
	}{
		{s.Pods.Running, "run"},
		{s.Pods.Pending - s.Pods.Gated, "wait for nodes"},
		{s.Pods.Gated, "carry scheduling gates"},
		{s.Pods.Succeeded, "succeeded"},
		{s.Pods.Failed, "failed"},
		{s.Pods.Terminating, "terminate"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if s.MinMember > 1 {
		parts = append(parts, fmt.Sprintf("%d start together or not at all", s.MinMember))
	}
	return strings.Join(parts, ", ")
}

// ordinal is a place, like 3rd.
func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
