// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// The kind of the document by which a ledger is served. Its schema only grows within a version.
const (
	DocumentVersion = "evictions.caldera/v1"
	DocumentKind    = "EvictionLedger"
)

// Document is a ledger as it is served: what docs/evictions-operations.md describes. Times are RFC 3339, amounts are
// Kubernetes quantities.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Decisions are those that are remembered, the newest first.
	Decisions []DecisionRecord `json:"decisions"`
	Totals    TotalsRecord     `json:"totals"`
}

// DecisionRecord is a decision in a Document.
type DecisionRecord struct {
	ID      uint64         `json:"id"`
	Time    metav1.Time    `json:"time"`
	Action  string         `json:"action"`
	Job     JobRecord      `json:"job,omitzero"`
	Members []MemberRecord `json:"members"`
	Victims []VictimRecord `json:"victims"`
	Kept    []KeptRecord   `json:"kept,omitempty"`
	Outcome Outcome        `json:"outcome"`
	Ended   *metav1.Time   `json:"ended,omitempty"`
	Problem string         `json:"problem,omitempty"`
}

// JobRecord names a job and its queue. Kind is PodGroup or Pod, the latter for a pod without a PodGroup.
type JobRecord struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Queue     string `json:"queue"`
}

// MemberRecord is a pod of the beneficiary and the node it is to get.
type MemberRecord struct {
	Namespace string              `json:"namespace"`
	Name      string              `json:"name"`
	UID       types.UID           `json:"uid"`
	Node      string              `json:"node"`
	Request   corev1.ResourceList `json:"request"`
}

// VictimRecord is a victim in a Document. Rule says why it was chosen, MovesTo to which node it is moved if it is, Problem why it was refused.
type VictimRecord struct {
	Namespace string              `json:"namespace"`
	Name      string              `json:"name"`
	UID       types.UID           `json:"uid"`
	Node      string              `json:"node"`
	Request   corev1.ResourceList `json:"request"`
	Job       JobRecord           `json:"job"`
	Rule      string              `json:"rule"`
	MovesTo   string              `json:"movesTo,omitempty"`
	Budgeted  bool                `json:"budgeted,omitempty"`
	State     VictimState         `json:"state"`
	Evicted   bool                `json:"evicted"`
	Deadline  *metav1.Time        `json:"deadline,omitempty"`
	Problem   string              `json:"problem,omitempty"`
}

// KeptRecord is why so many pods were not evicted.
type KeptRecord struct {
	Reason string `json:"reason"`
	Pods   int    `json:"pods"`
}

// TotalsRecord are the sums since the scheduler started.
type TotalsRecord struct {
	Decisions uint64              `json:"decisions"`
	Evicted   uint64              `json:"evicted"`
	Wasted    uint64              `json:"wasted"`
	Cycles    uint64              `json:"cycles"`
	Requested corev1.ResourceList `json:"requestedResources"`
	Taken     corev1.ResourceList `json:"evictedResources"`
}

// Document returns what the ledger holds now.
func (l *Ledger) Document() Document {
	doc := Document{APIVersion: DocumentVersion, Kind: DocumentKind, Decisions: []DecisionRecord{}}
	for _, d := range l.Decisions() {
		doc.Decisions = append(doc.Decisions, d.record())
	}
	f := l.Figures()
	doc.Totals = TotalsRecord{Wasted: f.Wasted, Cycles: f.Cycles, Requested: f.Requested.List(), Taken: f.Evicted.List()}
	for _, n := range f.Decisions {
		doc.Totals.Decisions += n
	}
	for _, n := range f.Evictions {
		doc.Totals.Evicted += n
	}
	return doc
}

func (d *Decision) record() DecisionRecord {
	r := DecisionRecord{
		ID: d.ID, Time: metav1.NewTime(d.Time), Action: d.Action,
		Members: make([]MemberRecord, 0, len(d.Members)), Victims: make([]VictimRecord, 0, len(d.Victims)),
		Outcome: d.Outcome, Ended: optional(d.Ended), Problem: d.Problem,
	}
	if !d.forNobody() {
		r.Job = jobRecord(d.Beneficiary, d.Queue)
	}
	for _, m := range d.Members {
		r.Members = append(r.Members, MemberRecord{Namespace: m.Namespace, Name: m.Name, UID: m.UID, Node: m.Node, Request: m.Request.List()})
	}
	for _, v := range d.Victims {
		r.Victims = append(r.Victims, v.record())
	}
	for _, k := range d.Kept {
		r.Kept = append(r.Kept, KeptRecord(k))
	}
	return r
}

func (v *Victim) record() VictimRecord {
	r := VictimRecord{
		UID: v.UID, Node: v.Node, Request: v.Request.List(), Job: jobRecord(v.Job, v.Queue), Rule: v.Why, MovesTo: v.MovesTo, Budgeted: v.Budgeted,
		State: v.State, Evicted: v.Evicted, Deadline: optional(v.Deadline), Problem: v.Problem,
	}
	if v.Pod != nil {
		r.Namespace, r.Name = v.Pod.Namespace, v.Pod.Name
	}
	return r
}

func jobRecord(key model.JobKey, queue string) JobRecord {
	kind := "PodGroup"
	switch key.Source {
	case model.FromPod:
		kind = "Pod"
	case model.FromOwner:
		kind = "Gang"
	}
	return JobRecord{Kind: kind, Namespace: key.Namespace, Name: key.Name, Queue: queue}
}

// optional is nil for the zero time.
func optional(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t))
}
