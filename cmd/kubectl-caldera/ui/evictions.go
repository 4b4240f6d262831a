// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/evictions"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// jobName names a job, and its queue.
type jobName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Queue     string `json:"queue"`
}

// victim is a pod that was chosen to be evicted.
type victim struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Job       jobName `json:"job"`
	Node      string  `json:"node"`
	State     string  `json:"state"`
	Rule      string  `json:"rule"`
}

// decision is a decision to evict.
type decision struct {
	ID      string   `json:"id"`
	When    *moment  `json:"when"`
	Action  string   `json:"action"`
	For     *jobName `json:"for"`
	From    []string `json:"from"`
	Evicted string   `json:"evicted"`
	Outcome string   `json:"outcome"`
	// Took is how long it took until the outcome was known; empty until then.
	Took    string   `json:"took"`
	Problem string   `json:"problem"`
	Rules   []string `json:"rules"`
	Victims []victim `json:"victims"`
	// Others is how many more were evicted in namespaces that the user may not see.
	Others int        `json:"others"`
	Kept   []keptPods `json:"kept"`
}

// keptPods is why so many pods were not evicted.
type keptPods struct {
	Reason string `json:"reason"`
	Pods   int    `json:"pods"`
}

// decisionTable are decisions, the newest first.
type decisionTable struct {
	Note      string     `json:"note"`
	Decisions []decision `json:"decisions"`
}

func (s *source) evictions(ctx context.Context, _ url.Values) (any, error) {
	list := &v1alpha1.EvictionDecisionList{}
	note, err := s.everywhere("evictions", func(namespace string) error {
		return s.client.List(ctx, v1alpha1.EvictionDecisions, namespace, metav1.ListOptions{}, list)
	})
	if err != nil {
		return nil, err
	}
	table := &decisionTable{Note: note, Decisions: make([]decision, 0, len(list.Items))}
	for i := range list.Items {
		table.Decisions = append(table.Decisions, decisionOf(&list.Items[i], time.Now()))
	}
	return table, nil
}

func decisionOf(d *v1alpha1.EvictionDecision, now time.Time) decision {
	s := &d.Status
	made := decision{
		ID: d.Name, When: since(&d.CreationTimestamp, now), Action: s.Action, From: evictions.VictimQueues(s), Evicted: evictions.Victims(s),
		Outcome: s.Outcome, Problem: s.Problem, Rules: []string{}, Victims: make([]victim, 0, len(s.Victims)), Others: int(s.OtherVictims),
		Kept: make([]keptPods, 0, len(s.Kept)),
	}
	if s.Job != nil {
		made.For = &jobName{s.Job.Namespace, s.Job.Name, s.Job.Queue}
	}
	if s.Ended != nil {
		made.Took = duration.HumanDuration(max(0, s.Ended.Sub(d.CreationTimestamp.Time)))
	}
	told := map[string]bool{}
	for i := range s.Victims {
		v := &s.Victims[i]
		made.Victims = append(made.Victims, victim{v.Namespace, v.Name, jobName{v.Job.Namespace, v.Job.Name, v.Job.Queue}, evictions.Where(v), v.State, v.Rule})
		if !told[v.Rule] {
			told[v.Rule], made.Rules = true, append(made.Rules, v.Rule)
		}
	}
	for _, k := range s.Kept {
		made.Kept = append(made.Kept, keptPods{k.Reason, int(k.Pods)})
	}
	return made
}
