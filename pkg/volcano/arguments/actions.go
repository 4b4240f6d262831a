// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// Action are the arguments of one action. A field that the action does not have is its default.
type Action struct {
	// PredicateErrorCache tells whether a node that failed one task of a role is passed over for the others; allocate,
	// backfill, preempt and reclaim.
	PredicateErrorCache bool
	// TopologyAwarePreemption tells whether preempt dry-runs the removal of victims.
	TopologyAwarePreemption bool
	// TopologyAwareWorkers is how many nodes that dry run looks at in parallel; at least 1.
	TopologyAwareWorkers int
	// MinCandidateNodesPercentage is the part of the nodes that the dry run looks at, in percent.
	MinCandidateNodesPercentage int
	// MinCandidateNodesAbsolute is how many nodes that dry run looks at, at least; 0 or more.
	MinCandidateNodesAbsolute int
	// MaxCandidateNodesAbsolute is how many nodes it looks at, at most; 1 or more.
	MaxCandidateNodesAbsolute int
	// MaxDomains is how many HyperNodes gangpreempt and gangreclaim try; at least 1.
	MaxDomains int
	// AllowWholeBundle tells whether gangpreempt and gangreclaim may evict whole gangs.
	AllowWholeBundle bool
	// Moves bound what consolidate does.
	Moves Moves
}

// Moves bound how pods are moved to other nodes.
type Moves struct {
	// MaxPods is how many pods one decision moves at most; from 1 to 100.
	MaxPods int
	// MaxPerHour is how many pods of the cluster are moved within an hour at most; from 0 to 10000.
	MaxPerHour int
	// Cooldown is how long no other pod of the same controller is moved after one was; from 0s to 720h.
	Cooldown time.Duration
	// MaxAge is how long a pod may have run that is moved; from 0s, which is however long, to 8760h. A pod may lift it by the
	// annotation caldera.dev/movable.
	MaxAge time.Duration
}

// DecodeAction reads the arguments of an action; path is that of the entry. An entry without arguments yields the
// defaults.
func DecodeAction(c *config.ActionConfiguration, path *field.Path) (Action, field.ErrorList) {
	d := newDecoder(path, c.Arguments)
	decoded := Action{
		PredicateErrorCache: true, TopologyAwareWorkers: 16, MinCandidateNodesPercentage: 10,
		MinCandidateNodesAbsolute: 1, MaxCandidateNodesAbsolute: 100, MaxDomains: 8, AllowWholeBundle: true,
		Moves: Moves{MaxPods: 16, MaxPerHour: 60, Cooldown: time.Hour, MaxAge: time.Hour},
	}
	switch c.Name {
	case config.Allocate, config.Backfill, config.Reclaim:
		decoded.predicateErrorCache(d)
	case config.Preempt:
		decoded.predicateErrorCache(d)
		decoded.topologyAwarePreemption(d)
	case config.GangPreempt, config.GangReclaim:
		decoded.MaxDomains = value(d, "maxDomains", decoded.MaxDomains, integer(1, math.MaxInt))
		decoded.AllowWholeBundle = value(d, "allowWholeBundle", decoded.AllowWholeBundle, Bool)
	case config.Consolidate:
		decoded.Moves.MaxPods = value(d, "maxPods", decoded.Moves.MaxPods, integer(1, 100))
		decoded.Moves.MaxPerHour = value(d, "maxMovesPerHour", decoded.Moves.MaxPerHour, integer(0, 10000))
		decoded.Moves.Cooldown = value(d, "cooldown", decoded.Moves.Cooldown, between(720*time.Hour, "from 0s to 720h"))
		decoded.Moves.MaxAge = value(d, "maxAge", decoded.Moves.MaxAge, between(8760*time.Hour, "from 0s, which is however old, to 8760h"))
	case config.Enqueue, config.Shuffle:
	}
	return decoded, d.finish(string(c.Name))
}

func (a *Action) predicateErrorCache(d *decoder) {
	a.PredicateErrorCache = value(d, "predicateErrorCacheEnable", a.PredicateErrorCache, Bool)
}

func (a *Action) topologyAwarePreemption(d *decoder) {
	a.TopologyAwarePreemption = value(d, "enableTopologyAwarePreemption", a.TopologyAwarePreemption, Bool)
	a.TopologyAwareWorkers = value(d, "topologyAwarePreemptWorkerNum", a.TopologyAwareWorkers, integer(1, math.MaxInt))
	a.MinCandidateNodesPercentage = value(d, "minCandidateNodesPercentage", a.MinCandidateNodesPercentage, integer(0, 100))
	a.MinCandidateNodesAbsolute = value(d, "minCandidateNodesAbsolute", a.MinCandidateNodesAbsolute, integer(0, math.MaxInt))
	a.MaxCandidateNodesAbsolute = value(d, "maxCandidateNodesAbsolute", a.MaxCandidateNodesAbsolute, integer(1, math.MaxInt))
}
