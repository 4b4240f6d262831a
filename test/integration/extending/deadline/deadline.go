// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deadline is an example of a policy from outside: of a queue the job with the earliest deadline goes first.
package deadline

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// Name is the policy's name in the tiers.
const Name = "deadline"

// Deadline orders jobs by an annotation of their PodGroups, such as "2026-08-15T12:00:00Z".
type Deadline struct {
	annotation string
}

var _ policy.JobOrderer = &Deadline{}

// New makes the policy of an entry. Its argument annotation is the key, by default example.com/deadline.
func New(entry *config.TierPlugin) (any, error) {
	d := &Deadline{annotation: "example.com/deadline"}
	for key, value := range entry.Arguments {
		if key != "annotation" {
			return nil, fmt.Errorf("argument %s is unknown: the only one is annotation", key)
		}
		if err := json.Unmarshal(value.Raw, &d.annotation); err != nil {
			return nil, fmt.Errorf("reading the argument annotation: %w", err)
		}
	}
	return d, nil
}

// CompareJobs puts jobs with a deadline first, the earliest before the others.
func (d *Deadline) CompareJobs(a, b *policy.Ranked) int {
	x, y := d.of(a.Job), d.of(b.Job)
	switch {
	case x.IsZero() == y.IsZero():
		return x.Compare(y)
	case x.IsZero():
		return 1
	}
	return -1
}

// of is the deadline of a job; zero when it has none that can be read.
func (d *Deadline) of(job *model.Job) time.Time {
	if job.Group == nil || job.Group.Object == nil {
		return time.Time{}
	}
	object, err := meta.Accessor(job.Group.Object)
	if err != nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, object.GetAnnotations()[d.annotation])
	if err != nil {
		return time.Time{}
	}
	return at
}
