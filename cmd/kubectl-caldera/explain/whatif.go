// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate/live"
	"github.com/caldera-scheduler/caldera/pkg/simulate/remedy"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

// explain finds out what would have a job start. An error may say that the user is not allowed to read what that takes.
func (f *flags) explain(ctx context.Context, client *leader.Client, job *v1alpha1.JobView) (*v1alpha1.Explanation, error) {
	config, err := client.Configuration(ctx)
	if err != nil {
		return nil, err
	}
	rest, err := f.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	now := job.Status.AsOf.Time
	read, err := live.Read(ctx, rest)
	if err != nil {
		return nil, err
	}
	objects, err := scenario.Complete(read, now)
	if err != nil {
		return nil, err
	}
	is := func(key model.JobKey) bool {
		return key.Namespace == job.Namespace && visibility.NameOf(key) == job.Name
	}
	// What the scheduler in memory logs is nobody's news.
	result, err := remedy.Find(klog.NewContext(ctx, logr.Discard()), objects, is, remedy.Options{Config: config, Now: now, Budget: f.budget})
	if err != nil {
		return nil, err
	}
	e := &v1alpha1.Explanation{Starts: result.Starts, Impossible: result.Impossible, Incomplete: result.Cut}
	for _, r := range result.Remedies {
		e.Remedies = append(e.Remedies, v1alpha1.Remedy{Kind: string(r.Kind), Text: r.Text})
	}
	return e, nil
}

// writeExplanation writes what would have a job start.
func writeExplanation(out io.Writer, e *v1alpha1.Explanation) error {
	fmt.Fprintln(out)
	if e.Impossible != "" {
		fmt.Fprintf(out, "NO NODE HERE CAN HOLD IT, however empty\n  %s\n\n", e.Impossible)
	}
	switch {
	case e.Starts:
		fmt.Fprintln(out, "IT IS ABOUT TO START: planned again, nothing stands in its way")
		return nil
	case len(e.Remedies) == 0 && e.Incomplete:
		fmt.Fprintln(out, "WOULD START WITH: nothing was found in the time given by --budget")
		return nil
	case len(e.Remedies) == 0:
		fmt.Fprintln(out, "WOULD START WITH: no single change of nodes, queues, jobs or itself was found that is enough")
		return nil
	case len(e.Remedies) == 1:
		fmt.Fprintln(out, "WOULD START WITH (planned again)")
	default:
		fmt.Fprintln(out, "WOULD START WITH ANY ONE OF (each planned again)")
	}
	rows := make([][]string, len(e.Remedies))
	for i, r := range e.Remedies {
		rows[i] = []string{r.Kind, r.Text}
	}
	return leader.Columns(out, "  ", rows)
}
