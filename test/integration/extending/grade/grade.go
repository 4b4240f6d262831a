// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package grade is an example of a policy from outside that has a say in evictions: jobs evict those of a lower grade, in any queue, but no pod
// that has just started.
package grade

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// Name is the policy's name in the tiers.
const Name = "grade"

// annotation is where a PodGroup says its grade, a whole number. Without it the grade is 0.
const annotation = "example.com/grade"

// Grade lets jobs evict those of a lower grade.
type Grade struct {
	settling time.Duration
}

var (
	_ policy.JobOrderer      = &Grade{}
	_ policy.Validator       = &Grade{}
	_ policy.Starver         = &Grade{}
	_ policy.PreemptSelector = &Grade{}
	_ policy.ReclaimSelector = &Grade{}
	_ policy.Protector       = &Grade{}
)

// New makes the policy of an entry. Its argument settling is how long pods are left alone after their start, such as "5m"; by default they
// are not.
func New(entry *config.TierPlugin) (any, error) {
	g := &Grade{}
	for key, value := range entry.Arguments {
		if key != "settling" {
			return nil, fmt.Errorf("argument %s is unknown: the only one is settling", key)
		}
		var text string
		err := json.Unmarshal(value.Raw, &text)
		if err == nil {
			g.settling, err = time.ParseDuration(text)
		}
		if err == nil && g.settling < 0 {
			err = errors.New("it must not be negative")
		}
		if err != nil {
			return nil, fmt.Errorf("reading the argument settling, which is a duration such as \"5m\": %w", err)
		}
	}
	return g, nil
}

// CompareJobs puts the higher grade first.
func (*Grade) CompareJobs(a, b *policy.Ranked) int { return of(b.Job) - of(a.Job) }

// Invalid keeps jobs whose grade is no number from turns.
func (*Grade) Invalid(job *model.Job) (why string) {
	if _, err := read(job); err != nil {
		return err.Error()
	}
	return ""
}

// Starving has every grade but the lowest take from others.
func (*Grade) Starving(job *model.Job) bool { return of(job) > 0 }

// Preemptable chooses jobs of a lower grade.
func (*Grade) Preemptable(e policy.Eviction, v model.Victim) (why string) {
	if of(v.Job) >= of(e.For()) {
		return "its grade is not lower"
	}
	return ""
}

// Reclaimable chooses the same in other queues.
func (g *Grade) Reclaimable(e policy.Eviction, v model.Victim) (why string) {
	return g.Preemptable(e, v)
}

// Protects protects pods that have just started, and has the job tried again when the first of them has run for long enough.
func (g *Grade) Protects(e policy.Eviction, v model.Victim) (why string) {
	start := v.Task.Pod.Status.StartTime
	if start == nil {
		return ""
	}
	settled := start.Add(g.settling)
	if !settled.After(e.Now()) {
		return ""
	}
	e.AskAgain(settled)
	return fmt.Sprintf("it started less than %s ago", g.settling)
}

func of(job *model.Job) int {
	n, _ := read(job)
	return n
}

// read reads the grade of a job.
func read(job *model.Job) (int, error) {
	if job.Group == nil || job.Group.Object == nil {
		return 0, nil
	}
	object, err := meta.Accessor(job.Group.Object)
	if err != nil {
		return 0, nil //nolint:nilerr // A group without metadata says nothing.
	}
	text, ok := object.GetAnnotations()[annotation]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("the annotation %s is %q: write a whole number, 0 or more", annotation, text)
	}
	return n, nil
}
