// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/live"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

// orderWord asks for the order of two jobs, if it comes first and two jobs follow.
const orderWord = "order"

// order says which of two jobs goes first, and why.
func (f *flags) order(ctx context.Context, client *leader.Client, args []string) error {
	if f.output.Objects() {
		return errors.New("--output: the order of two jobs is told to people only")
	}
	var jobs [2]*v1alpha1.JobView
	for i, arg := range args {
		namespace, name, err := f.Job(arg)
		if err != nil {
			return err
		}
		if jobs[i], err = client.Find(ctx, namespace, name); err != nil {
			return err
		}
	}
	a, b := jobs[0], jobs[1]
	if a.Namespace == b.Namespace && a.Name == b.Name {
		return fmt.Errorf("%s is one job, under both names", full(a))
	}
	if waits, said := notWaiting(a, b); !waits {
		_, err := fmt.Fprintln(client.Streams.Out, said)
		return err
	}
	p, err := f.precedence(ctx, client, a, b)
	if err != nil {
		return fmt.Errorf("finding out who goes first, which takes the right to list nodes, pods and queues of the whole cluster: %w", err)
	}
	return writeOrder(client.Streams.Out, a, b, &p)
}

// notWaiting says of two jobs which of them have no place in the order; true if both have.
func notWaiting(a, b *v1alpha1.JobView) (wait bool, said string) {
	const since = "it has no place in the order: only jobs that wait have"
	switch x, y := a.Status.Waiting, b.Status.Waiting; {
	case x && y:
		return true, ""
	case !x && !y:
		return false, fmt.Sprintf("Neither %s nor %s waits: only jobs that wait have a place in the order.", full(a), full(b))
	case x:
		a = b
	}
	return false, fmt.Sprintf("%s does not wait (%s): %s.", full(a), a.Status.Phase, since)
}

// precedence asks a scheduler in memory, by the configuration that is in force.
func (f *flags) precedence(ctx context.Context, client *leader.Client, a, b *v1alpha1.JobView) (p dispatch.Precedence, err error) {
	config, err := client.Configuration(ctx)
	if err != nil {
		return p, err
	}
	rest, err := f.ToRESTConfig()
	if err != nil {
		return p, err
	}
	read, err := live.Read(ctx, rest)
	if err != nil {
		return p, err
	}
	now := a.Status.AsOf.Time
	objects, err := scenario.Complete(read, now)
	if err != nil {
		return p, err
	}
	is := func(job *v1alpha1.JobView) func(model.JobKey) bool {
		return func(key model.JobKey) bool {
			return key.Namespace == job.Namespace && visibility.NameOf(key) == job.Name
		}
	}
	return simulate.Precedence(klog.NewContext(ctx, logr.Discard()), objects, simulate.Options{Config: config, Now: now}, is(a), is(b))
}

// writeOrder writes who goes first, and what decides that.
func writeOrder(out io.Writer, a, b *v1alpha1.JobView, p *dispatch.Precedence) error {
	x, y := p.A, p.B
	disagree := contradicts(a, b, p)
	if p.Order > 0 {
		a, b, x, y = b, a, y, x
	}
	fmt.Fprintf(out, "%s goes before %s\n\n", full(a), full(b))
	by := "plugin " + p.Plugin
	switch {
	case p.Plugin == "" && p.Queues:
		by = "no plugin tells their queues apart"
	case p.Plugin == "":
		by = "no plugin tells them apart"
	}
	between := "jobs of queue " + a.Status.Queue
	if a.Status.Queue != b.Status.Queue {
		between = fmt.Sprintf("queues %s and %s", a.Status.Queue, b.Status.Queue)
	}
	rule := p.Rule
	if rule == "" {
		rule = "it does not say why"
	}
	rows := [][]string{{"BETWEEN", between}, {"DECIDED BY", by}, {"RULE", rule}, {full(a), x}, {full(b), y}}
	if err := leader.Columns(out, "", rows); err != nil {
		return err
	}
	if p.Queues {
		fmt.Fprint(out, notes(a, b))
	}
	if disagree {
		fmt.Fprint(out, "\nThe scheduler that leads had them the other way round when it last looked: something has changed since, or counts that is known to it alone.\n")
	}
	return nil
}

// notes are what else there is to know of jobs of different queues.
func notes(a, b *v1alpha1.JobView) string {
	var text strings.Builder
	text.WriteString("\n")
	for _, job := range []*v1alpha1.JobView{a, b} {
		if p := job.Status.Position; p != nil && p.InQueue > 1 {
			fmt.Fprintf(&text, "%s of queue %s come before %s.\n", leader.Count(int(p.InQueue-1), "job", "jobs"), job.Status.Queue, full(job))
		}
	}
	text.WriteString("What queues hold changes with each job that starts or ends, and so may this.\n")
	return text.String()
}

// contradicts reports whether the places of two jobs say something else. Those of their queues do not count gangs that are completed first.
func contradicts(a, b *v1alpha1.JobView, p *dispatch.Precedence) bool {
	x, y := a.Status.Position, b.Status.Position
	switch {
	case x == nil || y == nil:
		return false
	case a.Status.Queue == b.Status.Queue:
		return (x.InQueue < y.InQueue) != (p.Order < 0)
	}
	return p.Queues && (x.Queue < y.Queue) != (p.Order < 0)
}

// full names a job in a sentence.
func full(job *v1alpha1.JobView) string { return job.Namespace + "/" + job.Name }
