// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/engine"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Figures are the numbers of queues and jobs at one moment.
type Figures struct {
	Queues map[string]QueueFigures `json:"queues"`
	// JobShares are the dominant shares of jobs, a fraction of the cluster, by "namespace/name"; nil when no policy
	// computes them.
	JobShares map[string]float64 `json:"jobShares,omitzero"`
}

// QueueFigures are the numbers of a queue. Those that its policy does not have are nil.
type QueueFigures struct {
	// Allocated is what the queue's tasks hold, Request what they hold or wait for.
	Allocated Amounts `json:"allocated,omitzero"`
	Request   Amounts `json:"request,omitzero"`
	// Deserved is the queue's part of the cluster, Inqueue what its admitted jobs may still take, RealCapability the
	// most it can use.
	Deserved       Amounts `json:"deserved,omitzero"`
	Inqueue        Amounts `json:"inqueue,omitzero"`
	RealCapability Amounts `json:"realCapability,omitzero"`
	// Share is allocated to deserved, of the resource for which it is largest.
	Share *float64 `json:"share,omitzero"`
}

// Amounts are amounts of resources: millicores of cpu, bytes of memory, whole units of all others; infinite where there
// is no limit.
type Amounts map[corev1.ResourceName]float64

// amountsOf converts a vector.
func amountsOf(v resource.Vector) Amounts {
	amounts := Amounts{}
	for _, a := range v {
		amounts[a.Name] = float64(a.Value)
	}
	return amounts
}

// MarshalJSON writes cpu as "milliCPU" and memory as "memoryBytes", both always; other resources only if there are any;
// no limit as "unlimited".
func (a Amounts) MarshalJSON() ([]byte, error) {
	out := map[string]any{"milliCPU": 0, "memoryBytes": 0}
	for name, value := range a {
		key := string(name)
		switch name {
		case corev1.ResourceCPU:
			key = "milliCPU"
		case corev1.ResourceMemory:
			key = "memoryBytes"
		}
		switch {
		case math.IsInf(value, 1):
			out[key] = "unlimited"
		case value != 0:
			out[key] = value
		}
	}
	return json.Marshal(out)
}

// figuresOf returns the figures as they are now. It is the only place that knows where they come from.
func figuresOf(e *engine.Engine) Figures {
	figures := Figures{Queues: map[string]QueueFigures{}}
	allocated := map[string]*resource.Vector{}
	snapshot := e.State.Snapshot()
	for q := range snapshot.Queues {
		allocated[q.Name] = &resource.Vector{}
	}
	for job := range snapshot.Jobs {
		sum := allocated[job.Queue]
		if sum == nil {
			continue
		}
		for _, t := range job.Tasks {
			if t.Node != "" && t.Status.HoldsNode() && t.Status != model.Releasing {
				sum.Add(t.Request)
			}
		}
	}
	for name, sum := range allocated {
		figures.Queues[name] = QueueFigures{Allocated: amountsOf(*sum)}
	}
	return figures
}
