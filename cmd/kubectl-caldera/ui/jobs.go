// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/explain"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/jobs"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/queues"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/simulate/remedy"
)

// mostJobs is how many jobs are shown at most: a browser draws so many within a second, and nobody reads more.
const mostJobs = 1000

// jobRow is a job in a line.
type jobRow struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Queue     string  `json:"queue"`
	Place     string  `json:"place"`
	Phase     string  `json:"phase"`
	Pods      string  `json:"pods"`
	Waits     *moment `json:"waits"`
	Reason    string  `json:"reason"`
	Message   string  `json:"message"`
}

// jobTable are the jobs that were asked for, and by what they can be narrowed down.
type jobTable struct {
	Note string `json:"note"`
	// All is how many jobs there are, Found how many of them were asked for.
	All   int      `json:"all"`
	Found int      `json:"found"`
	Jobs  []jobRow `json:"jobs"`
	// Of all jobs.
	Namespaces []counted `json:"namespaces"`
	Queues     []counted `json:"queues"`
	Reasons    []counted `json:"reasons"`
}

// filter is which jobs are asked for; what is empty does not matter.
type filter struct {
	namespace, reason, text string
	// queues are those asked for; nil for all.
	queues  map[string]bool
	waiting bool
}

func (f *filter) matches(j *v1alpha1.JobView) bool {
	reason := ""
	if j.Status.Reason != nil {
		reason = j.Status.Reason.Type
	}
	return (f.namespace == "" || j.Namespace == f.namespace) && (f.queues == nil || f.queues[j.Status.Queue]) && (f.reason == "" || reason == f.reason) &&
		(!f.waiting || j.Status.Waiting) && strings.Contains(strings.ToLower(j.Namespace+"/"+j.Name), strings.ToLower(f.text))
}

func (s *source) jobs(ctx context.Context, parameters url.Values) (any, error) {
	list := &v1alpha1.JobViewList{}
	note, err := s.everywhere("jobs", func(namespace string) error {
		return s.client.List(ctx, v1alpha1.JobViews, namespace, metav1.ListOptions{}, list)
	})
	if err != nil {
		return nil, err
	}
	f := filter{namespace: parameters.Get("namespace"), reason: parameters.Get("reason"), text: parameters.Get("text"), waiting: parameters.Get("waiting") != ""}
	if name := parameters.Get("queue"); name != "" {
		_, views, _, err := queues.Read(ctx, s.flags, s.client)
		if err != nil {
			return nil, err
		}
		f.queues = below(views, name)
	}
	table := jobsOf(list.Items, &f)
	table.Note = note
	return table, nil
}

// everywhere reads something of all namespaces, or of the user's own if the user may not read all; a note says so then.
func (s *source) everywhere(what string, read func(namespace string) error) (note string, err error) {
	if err = read(""); !apierrors.IsForbidden(err) {
		return "", err
	}
	namespace, scopeErr := s.flags.Scope()
	if scopeErr != nil || namespace == "" {
		return "", cmp.Or(scopeErr, err)
	}
	return fmt.Sprintf("You may not see all %s; these are of namespace %s.", what, namespace), read(namespace)
}

func jobsOf(all []v1alpha1.JobView, f *filter) *jobTable {
	table := &jobTable{All: len(all), Jobs: []jobRow{}}
	namespaces, inQueues, reasons := map[string]int{}, map[string]int{}, map[string]int{}
	jobs.InOrder(all)
	for i := range all {
		j := &all[i]
		namespaces[j.Namespace]++
		inQueues[j.Status.Queue]++
		if j.Status.Reason != nil {
			reasons[j.Status.Reason.Type]++
		}
		if !f.matches(j) {
			continue
		}
		if table.Found++; len(table.Jobs) < mostJobs {
			table.Jobs = append(table.Jobs, rowOf(j))
		}
	}
	table.Namespaces, table.Queues, table.Reasons = counts(namespaces), counts(inQueues), counts(reasons)
	return table
}

func rowOf(j *v1alpha1.JobView) jobRow {
	s := &j.Status
	row := jobRow{
		Namespace: j.Namespace, Name: j.Name, Queue: s.Queue, Phase: string(s.Phase), Pods: jobs.Pods(s), Waits: since(s.WaitingSince, s.AsOf.Time),
	}
	if p := s.Position; p != nil {
		row.Place = fmt.Sprintf("%d/%d", p.InQueue, p.OfQueue)
	}
	if s.Reason != nil {
		row.Reason, row.Message = s.Reason.Type, s.Reason.Message
	}
	return row
}

// counts are numbers by name.
func counts(of map[string]int) []counted {
	list := make([]counted, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, counted{name, of[name]})
	}
	return list
}

// fact is what is told of a job, in one or more lines.
type fact struct {
	Name  string   `json:"name"`
	Texts []string `json:"texts"`
}

// jobPage is all that is told of a job, as explain tells it.
type jobPage struct {
	Namespace string           `json:"namespace"`
	Name      string           `json:"name"`
	Queue     string           `json:"queue"`
	Headline  string           `json:"headline"`
	Waiting   bool             `json:"waiting"`
	Min       int              `json:"min"`
	Pods      v1alpha1.JobPods `json:"pods"`
	Facts     []fact           `json:"facts"`
	Resources []jobResource    `json:"resources"`
}

// jobResource is what a job holds of a resource, and what its pods ask for that have no node.
type jobResource struct {
	Name    string `json:"name"`
	Held    string `json:"held"`
	Missing string `json:"missing"`
}

func (s *source) job(ctx context.Context, parameters url.Values) (any, error) {
	view, err := s.client.Find(ctx, parameters.Get("namespace"), parameters.Get("name"))
	if err != nil {
		return nil, err
	}
	return pageOf(view), nil
}

func pageOf(j *v1alpha1.JobView) *jobPage {
	page := &jobPage{
		Namespace: j.Namespace, Name: j.Name, Queue: j.Status.Queue, Headline: explain.Headline(j), Waiting: j.Status.Waiting,
		Min: int(j.Status.MinMember), Pods: j.Status.Pods, Resources: []jobResource{},
	}
	for _, f := range explain.Facts(&j.Status) {
		page.Facts = append(page.Facts, fact(f))
	}
	for _, name := range queues.Resources(j.Status.Held, j.Status.Missing) {
		page.Resources = append(page.Resources, jobResource{
			string(name), queues.Amount(j.Status.Held, name, "0"), queues.Amount(j.Status.Missing, name, "0"),
		})
	}
	return page
}

// remedies are what would have a job start.
type remedies struct {
	// Unknown says why it is not known; empty if it is.
	Unknown    string            `json:"unknown"`
	Impossible string            `json:"impossible"`
	Heading    string            `json:"heading"`
	Remedies   []v1alpha1.Remedy `json:"remedies"`
}

func (s *source) whatIf(ctx context.Context, parameters url.Values) (any, error) {
	view, err := s.client.Find(ctx, parameters.Get("namespace"), parameters.Get("name"))
	if err != nil {
		return nil, err
	}
	if !view.Status.Waiting {
		return remedies{Heading: "It does not wait", Remedies: []v1alpha1.Remedy{}}, nil
	}
	e, err := explain.WhatIf(ctx, s.flags, s.client, view, remedy.DefaultBudget)
	if err != nil {
		return remedies{Unknown: explain.Unknown(err), Remedies: []v1alpha1.Remedy{}}, nil
	}
	return remedies{Impossible: e.Impossible, Heading: explain.Heading(e), Remedies: append([]v1alpha1.Remedy{}, e.Remedies...)}, nil
}
