// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// RecentUseAnnotation of a queue is what it has held on average. The value is JSON:
//
//	{"at": "2026-01-02T15:04:05Z", "average": {"cpu": "12500m"}}
//
// The scheduler writes it where that counts for what queues are due. So a restart does not forget it.
const RecentUseAnnotation = "caldera.dev/recent-use"

// Recent is what a queue has held on average. What it held a half-life ago counts half. In steady use it is what the queue holds.
type Recent struct {
	// At is when that was so; zero: it is not known.
	At      time.Time
	Average resource.Portion
}

// After is the average at a later time, until which the queue held an amount. A clock that was set back changes nothing.
func (r Recent) After(now time.Time, held resource.Vector, halfLife time.Duration) Recent {
	since := now.Sub(r.At)
	if since <= 0 {
		return r
	}
	stays := math.Exp2(-since.Seconds() / halfLife.Seconds())
	return Recent{At: now, Average: r.Average.Times(stays).Plus(held.Times(1 - stays))}
}

// Like reports whether two averages differ by a part of a whole at most, in each of its resources.
func (r Recent) Like(o Recent, part float64, whole resource.Portion) bool {
	return !slices.ContainsFunc(whole, func(all resource.Quantity[float64]) bool {
		return math.Abs(r.Average.Get(all.Name)-o.Average.Get(all.Name)) > part*all.Value
	})
}

// written is the annotation's form.
type written struct {
	At      metav1.Time         `json:"at"`
	Average corev1.ResourceList `json:"average"`
}

// Annotation is the value of RecentUseAnnotation.
func (r Recent) Annotation() (string, error) {
	value, err := json.Marshal(written{At: metav1.NewTime(r.At), Average: r.Average.List()})
	return string(value), err
}

// RecentOf reads the annotation; zero when a queue has none. The error says what to do.
func RecentOf(annotations map[string]string) (Recent, error) {
	value, there := annotations[RecentUseAnnotation]
	if !there {
		return Recent{}, nil
	}
	var w written
	if err := json.Unmarshal([]byte(value), &w); err != nil || w.At.IsZero() {
		return Recent{}, fmt.Errorf("annotation %s is %.100q, which is nothing that the scheduler wrote: remove it; until then the queue starts as one that held nothing",
			RecentUseAnnotation, value)
	}
	return Recent{At: w.At.Time, Average: resource.PortionOf(w.Average)}, nil
}
