// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"

	"github.com/caldera-scheduler/caldera/internal/testing/reference"
)

const (
	reasonsOfJobs = "pkg/model"
	writer        = "pkg/status"
)

// never begins the end of the comment of a reason that nobody is told.
const never = "It is never told"

// reasons is the page of the reasons in conditions, and of events.
func reasons() (*reference.Page, error) {
	jobs, err := read(reasonsOfJobs)
	if err != nil {
		return nil, err
	}
	written, err := read(writer)
	if err != nil {
		return nil, err
	}
	p := reference.New("reasons-and-events.md", "Reasons and events", "the comments of "+reasonsOfJobs+"/reason.go and "+writer+"/reasons.go")
	p.Section(2, "Why a job waits")
	p.Say("Reasons in the condition `Unschedulable` of PodGroups, in views, and in the label `reason` of [metrics](metrics.md). When they are written is in " +
		"[names.md](../names.md#conditions), and what wrong objects lead to in [bad-input.md](../bad-input.md).")
	var rows [][]string
	for _, c := range jobs.constants {
		if c.typ != "ReasonKind" || strings.Contains(reference.Prose(c.comment), never) {
			continue
		}
		rows = append(rows, []string{reference.Quote(c.value), reference.Sentence(of(c.name, c.comment))})
	}
	p.Table([]string{"reason", "the job waits because"}, rows)
	p.Section(2, "Why a pod waits")
	p.Say("Reasons in the condition `PodScheduled` of its pods. Those of the job that are not here are written as they are above.")
	p.Table([]string{"reason", "when"}, marked(written, podReasons))
	p.Section(2, "Why a pod is evicted")
	p.Say("Reasons in its condition `DisruptionTarget`.")
	p.Table([]string{"reason", "when"}, marked(written, evictionReasons))
	p.Section(2, "Events")
	events, err := events(written)
	if err != nil {
		return nil, err
	}
	p.Table([]string{"reason", "on", "what it says"}, events)
	return p, nil
}

// The types of constants that are reasons.
const (
	podReasons      = "podReason"
	evictionReasons = "evictionReason"
	eventReasons    = "eventReason"
)

// marked are the constants of a type with their comments.
func marked(c *comments, typ string) [][]string {
	var rows [][]string
	for _, r := range c.constants {
		if r.typ == typ {
			rows = append(rows, []string{reference.Quote(r.value), reference.Sentence(of(r.name, r.comment))})
		}
	}
	return rows
}

// events are the reasons of events. A comment says first on what they are recorded: "NAME, on PODS: why".
func events(c *comments) ([][]string, error) {
	var rows [][]string
	for _, r := range c.constants {
		if r.typ != eventReasons {
			continue
		}
		rest, ok := strings.CutPrefix(r.comment, r.name+", on ")
		on, why, more := strings.Cut(rest, ": ")
		if !ok || !more {
			return nil, fmt.Errorf("the comment of %s does not begin with %q and what it is recorded on", r.name, r.name+", on ")
		}
		rows = append(rows, []string{reference.Quote(r.value), reference.Prose(on), reference.Sentence(why)})
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	for _, f := range c.files {
		if err := onlyKnown(f, c); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// onlyKnown refuses events whose reason is no constant that is told of.
func onlyKnown(f *ast.File, c *comments) (err error) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || method.Sel.Name != "event" && method.Sel.Name != "queueEvent" {
			return true
		}
		// Of those by which others are recorded the reason is a parameter.
		if !slices.ContainsFunc(call.Args, func(a ast.Expr) bool {
			id, ok := a.(*ast.Ident)
			return ok && (id.Name == "reason" || slices.ContainsFunc(c.constants, func(r constant) bool { return r.name == id.Name && r.typ == eventReasons }))
		}) {
			err = fmt.Errorf("%s records an event whose reason is none of the constants of the type %s", writer, eventReasons)
		}
		return true
	})
	return err
}
