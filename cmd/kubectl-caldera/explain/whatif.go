// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate/live"
	"github.com/caldera-scheduler/caldera/pkg/simulate/remedy"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

// WhatIf finds out what would have a job start, and tries changes for so long at most. It reads the objects of the whole cluster: an error may say that
// the user is not allowed to.
func WhatIf(ctx context.Context, f *leader.Flags, client *leader.Client, job *v1alpha1.JobView, budget time.Duration) (*v1alpha1.Explanation, error) {
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
	result, err := remedy.Find(klog.NewContext(ctx, logr.Discard()), objects, is, remedy.Options{Config: config, Now: now, Budget: budget})
	if err != nil {
		return nil, err
	}
	e := &v1alpha1.Explanation{Starts: result.Starts, Impossible: result.Impossible, Incomplete: result.Cut}
	for _, r := range result.Remedies {
		e.Remedies = append(e.Remedies, v1alpha1.Remedy{Kind: string(r.Kind), Text: r.Text})
	}
	return e, nil
}

// Unknown says why it is not known what would have a job start.
func Unknown(err error) string {
	if apierrors.IsForbidden(err) {
		return "What would have it start is told to who may list nodes, pods and queues of the whole cluster."
	}
	return fmt.Sprintf("What would have it start is not known: %v", err)
}

// Heading is the line above the remedies. If there are none, it says so.
func Heading(e *v1alpha1.Explanation) string {
	switch {
	case e.Starts:
		return "IT IS ABOUT TO START: planned again, nothing stands in its way"
	case len(e.Remedies) == 0 && e.Incomplete:
		return "WOULD START WITH: nothing was found in the time given"
	case len(e.Remedies) == 0:
		return "WOULD START WITH: no single change of nodes, queues, jobs or itself was found that is enough"
	case len(e.Remedies) == 1:
		return "WOULD START WITH (planned again)"
	}
	return "WOULD START WITH ANY ONE OF (each planned again)"
}

// writeExplanation writes what would have a job start.
func writeExplanation(out io.Writer, e *v1alpha1.Explanation) error {
	fmt.Fprintln(out)
	if e.Impossible != "" {
		fmt.Fprintf(out, "NO NODE HERE CAN HOLD IT, however empty\n  %s\n\n", e.Impossible)
	}
	fmt.Fprintln(out, Heading(e))
	if e.Starts || len(e.Remedies) == 0 {
		return nil
	}
	rows := make([][]string, len(e.Remedies))
	for i, r := range e.Remedies {
		rows[i] = []string{r.Kind, r.Text}
	}
	return leader.Columns(out, "  ", rows)
}
