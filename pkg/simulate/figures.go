// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
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

// amountsOf converts amounts.
func amountsOf(p resource.Portion) Amounts {
	amounts := make(Amounts, len(p))
	for _, a := range p {
		amounts[a.Name] = a.Value
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
func figuresOf(c *core.Core) Figures {
	figures := Figures{Queues: map[string]QueueFigures{}, JobShares: map[string]float64{}}
	queues, shares := c.Dispatcher.View().Figures(), c.Dispatcher.View().Shares()
	names := resourcesOf(c)
	for _, q := range queues {
		figures.Queues[q.Name] = QueueFigures{
			Allocated: amountsOf(q.Usage.Allocated.Portion()), Request: amountsOf(q.Usage.Requested.Portion()),
			Inqueue: amountsOf(q.Usage.Inqueue.Portion()), Deserved: amountsOf(q.Deserved),
			RealCapability: limitOf(q.Real, names), Share: new(q.Share),
		}
	}
	for key, share := range shares {
		figures.JobShares[key.String()] = share
	}
	return figures
}

// resourcesOf returns the resources that the cluster has.
func resourcesOf(c *core.Core) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, a := range c.State.Totals().Allocatable {
		if a.Value > 0 {
			names = append(names, a.Name)
		}
	}
	return names
}

// limitOf converts a limit, for all resources of a cluster.
func limitOf(l resource.Limit, names []corev1.ResourceName) Amounts {
	amounts := amountsOf(l.Amounts)
	for _, name := range names {
		if _, limited := l.Of(name); !limited {
			amounts[name] = math.Inf(1)
		}
	}
	return amounts
}
