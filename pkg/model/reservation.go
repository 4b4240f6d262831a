// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ReservationAnnotation of a queue is the room that is reserved for a job of it. The value is JSON:
//
//	{"job": "ns/train", "uid": "6f1b", "since": "2026-01-02T15:04:05Z", "start": "2026-01-02T16:00:00Z", "bound": true,
//	 "first": "2026-01-02T16:00:00Z", "pods": {"node-1": ["41c7", "9a02"]}, "inTheWay": ["e3d9"]}
//
// The scheduler writes it, and reads it once, when it starts. So a restart breaks no promise.
const ReservationAnnotation = "caldera.dev/reservation"

// mostOfReservation is for how many bytes of names pods and nodes are written down. All annotations of an object together may have 256 KiB.
const mostOfReservation = 180 << 10

// Reservation is room that is reserved for a job until pods have ended. It is never changed.
type Reservation struct {
	// Job is for people; the UID is that of its PodGroup, or of the pod that is a job of its own.
	Job string    `json:"job"`
	UID types.UID `json:"uid"`
	// Since is when room was reserved for it first.
	Since time.Time `json:"since"`
	// Start is when the room is expected to be free. Bound: it is by then. Guessed: nobody has said when all of the pods in the way end. IfDue: the
	// queue may hold less by then because others ask for more.
	Start   time.Time `json:"start"`
	Bound   bool      `json:"bound,omitempty"`
	Guessed bool      `json:"guessed,omitempty"`
	IfDue   bool      `json:"ifDue,omitempty"`
	// First is by when it was first told that it starts; zero if that was no bound, or one if due.
	First time.Time `json:"first,omitzero"`
	// Pods are those for which it is reserved, by node. InTheWay are those that were in the way at first. Both are empty for a job that is too large
	// to be written down.
	Pods     map[string][]types.UID `json:"pods,omitempty"`
	InTheWay []types.UID            `json:"inTheWay,omitempty"`
}

// Concise returns the reservation without its pods, if these are too many to be written down, and with all in order.
func (r Reservation) Concise() *Reservation {
	size := 0
	for node, pods := range r.Pods {
		size += len(node)
		slices.Sort(pods)
		for _, uid := range pods {
			size += len(uid) + len(`"",`)
		}
	}
	for _, uid := range r.InTheWay {
		size += len(uid) + len(`"",`)
	}
	if slices.Sort(r.InTheWay); size > mostOfReservation {
		r.Pods, r.InTheWay = nil, nil
	}
	return &r
}

// Same reports whether two reservations, each nil for none, say the same.
func (r *Reservation) Same(o *Reservation) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.UID == o.UID && r.Job == o.Job && r.Since.Equal(o.Since) && r.Start.Equal(o.Start) && r.Bound == o.Bound && r.Guessed == o.Guessed && r.IfDue == o.IfDue && r.First.Equal(o.First) &&
		maps.EqualFunc(r.Pods, o.Pods, slices.Equal[[]types.UID]) && slices.Equal(r.InTheWay, o.InTheWay)
}

// Annotation is the value of ReservationAnnotation.
func (r *Reservation) Annotation() (string, error) {
	value, err := json.Marshal(r)
	return string(value), err
}

// ReservationOf reads the annotation; nil when a queue has none. The error says what to do.
func ReservationOf(annotations map[string]string) (*Reservation, error) {
	value, there := annotations[ReservationAnnotation]
	if !there {
		return nil, nil
	}
	var r Reservation
	if err := json.Unmarshal([]byte(value), &r); err != nil || r.UID == "" || r.Since.IsZero() {
		return nil, fmt.Errorf("annotation %s is %.100q, which is nothing that the scheduler wrote: remove it; until then a restart forgets what room is reserved",
			ReservationAnnotation, value)
	}
	return &r, nil
}
