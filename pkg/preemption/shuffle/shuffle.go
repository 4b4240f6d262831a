// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shuffle is Volcano's action shuffle: plugins of the tiers take turns at moving pods, for nobody's sake.
package shuffle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/preemption/rebalance"
	"github.com/caldera-scheduler/caldera/pkg/preemption/reserve"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// pause is the least time between two rounds of a plugin: the period of Volcano's scheduler.
const pause = time.Second

// Shuffler gives each plugin that takes part its turn every so often.
type Shuffler struct {
	clock   clock.WithTicker
	plugins []*participant
	// loads are those of nodes; nil if no plugin asks.
	loads *load.Loads
	// moved are the nodes between which pods were moved, with the time: until a window later their loads are in part those of
	// before. Only turns look at them.
	moved map[string]time.Time

	// mu guards the times of the plugins.
	mu sync.Mutex
}

// participant is a plugin that takes part.
type participant struct {
	every time.Duration
	// next is when its turn is; zero: at once.
	next   time.Time
	choose func(now time.Time, nodes []rebalance.Node, protection *policy.Protection) []rebalance.Choice
}

// Parts are what a turn looks at, and what it evicts by.
type Parts struct {
	State  *model.State
	Keeper *reserve.Keeper
	// Protection says who may be evicted.
	Protection func(policy.EvictionWorld) *policy.Protection
}

// New builds what the actions and tiers say of shuffle; nil when that is nothing. The cluster is the one whose metrics API may be asked.
func New(c clock.WithTicker, cluster *rest.Config, args *config.BatchQueueArgs) (*Shuffler, error) {
	if !slices.Contains(args.Actions, config.Shuffle) {
		return nil, nil
	}
	s := &Shuffler{clock: c, moved: map[string]time.Time{}}
	var all field.ErrorList
	for i := range args.Tiers {
		for k := range args.Tiers[i].Plugins {
			if entry := &args.Tiers[i].Plugins[k]; entry.Enabled(config.EnableVictim) {
				path := field.NewPath("tiers").Index(i).Child("plugins").Index(k)
				all = append(all, s.register(cluster, args, entry, path)...)
			}
		}
	}
	if err := all.ToAggregate(); err != nil {
		return nil, fmt.Errorf("building the action shuffle: %w", err)
	}
	if len(s.plugins) == 0 {
		return nil, nil
	}
	return s, nil
}

// register has a plugin take part if it is one of those that do.
func (s *Shuffler) register(cluster *rest.Config, args *config.BatchQueueArgs, entry *config.TierPlugin, path *field.Path) field.ErrorList {
	switch entry.Name {
	case config.PluginTDM:
		decoded, errs := arguments.DecodeTDM(entry, path)
		if len(decoded.RevocableZones) > 0 {
			s.plugins = append(s.plugins, &participant{
				every: max(pause, decoded.EvictPeriod),
				choose: func(now time.Time, nodes []rebalance.Node, protection *policy.Protection) []rebalance.Choice {
					return rebalance.Vacate(decoded.RevocableZones, now, nodes, protection)
				},
			})
		}
		return errs
	case config.PluginRescheduling:
		decoded, errs := arguments.DecodeRescheduling(entry, path)
		section := field.NewPath("metrics")
		metrics, wrong := arguments.DecodeMetrics(args.Metrics, section)
		if errs = append(errs, wrong...); len(errs) > 0 {
			return errs
		}
		from, err := load.New(load.Options{Metrics: metrics, Cluster: cluster})
		if err != nil {
			return field.ErrorList{field.Invalid(section, metrics.Type, err.Error())}
		}
		s.loads = load.NewLoads(from, s.clock, &metrics)
		s.plugins = append(s.plugins, &participant{
			every: decoded.Interval, next: s.clock.Now().Add(decoded.Interval),
			choose: func(_ time.Time, nodes []rebalance.Node, protection *policy.Protection) []rebalance.Choice {
				return rebalance.Spread(&decoded.LowNodeUtilization, nodes, protection)
			},
		})
	}
	return nil
}

// load is how much of a node is in use; nil when that is not known, or not yet after pods were moved: else they would be moved
// again and again before it shows.
func (s *Shuffler) load(n *corev1.Node) *arguments.Utilization {
	if s.loads == nil {
		return nil
	}
	if at, moved := s.moved[n.Name]; moved && s.clock.Since(at) < load.Window {
		return nil
	}
	load := s.loads.Of(n)
	if !s.loads.Fresh(load.CPU) || !s.loads.Fresh(load.Memory) {
		return nil
	}
	return &arguments.Utilization{CPU: load.CPU.Percent, Memory: load.Memory.Percent}
}

// Due is when the next turn is.
func (s *Shuffler) Due() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.plugins[0].next
	for _, p := range s.plugins {
		if p.next.Before(next) {
			next = p.next
		}
	}
	return next
}

// Run gives the plugins their turns until the context ends.
func (s *Shuffler) Run(ctx context.Context, parts Parts) {
	if s.loads != nil {
		go s.loads.Follow(ctx, func() {})
	}
	for {
		if wait := s.Due().Sub(s.clock.Now()); wait > 0 {
			timer := s.clock.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C():
			}
		}
		if ctx.Err() != nil {
			return
		}
		s.turn(ctx, parts)
	}
}

// turn has the plugins choose whose turn it is, one after the other, and evicts whom they choose. Until that is under way the
// turn is still due.
func (s *Shuffler) turn(ctx context.Context, parts Parts) {
	now := s.clock.Now()
	nodes := rebalance.Survey(parts.State.Nodes(), parts.State.Snapshot(), s.load)
	protection := parts.Protection(parts.Keeper.World(""))
	var chosen []rebalance.Choice
	var took []*participant
	for _, p := range s.plugins {
		if !p.next.After(now) {
			chosen = append(chosen, p.choose(now, nodes, protection)...)
			took = append(took, p)
		}
	}
	if len(chosen) > 0 {
		departures := make([]reserve.Departure, len(chosen))
		for i, c := range chosen {
			departures[i] = reserve.Departure{Victim: c.Victim, Why: c.Why}
		}
		parts.Keeper.Evict(ctx, eviction.Shuffle, departures)
	}
	maps.DeleteFunc(s.moved, func(_ string, at time.Time) bool { return now.Sub(at) >= load.Window })
	for _, c := range chosen {
		if c.To != "" {
			s.moved[c.Task.Node], s.moved[c.To] = now, now
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range took {
		p.next = now.Add(p.every)
	}
}
