// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/preemption/rebalance"
	"github.com/caldera-scheduler/caldera/pkg/preemption/reserve"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// shufflePause is the least time between two rounds of a plugin: the period of Volcano's scheduler.
const shufflePause = time.Second

// shuffler does what the action shuffle does: each plugin that takes part has its turn every so often.
type shuffler struct {
	clock   clock.WithTicker
	plugins []*shuffling
	// loads are those of nodes; nil if no plugin asks.
	loads *load.Loads
	// moved are the nodes between which pods were moved, with the time: until a window later their loads are in part those of
	// before. Only turns look at them.
	moved map[string]time.Time

	// mu guards the times of the plugins.
	mu sync.Mutex
}

// shuffling is a plugin that takes part.
type shuffling struct {
	every time.Duration
	// next is when its turn is; zero: at once.
	next   time.Time
	choose func(now time.Time, nodes []rebalance.Node, protection *policy.Protection) []rebalance.Choice
}

// newShuffler builds what the actions and tiers say of shuffle; nil when that is nothing.
func newShuffler(c clock.WithTicker, handle fwk.Handle, args *config.BatchQueueArgs) (*shuffler, error) {
	if !slices.Contains(args.Actions, config.Shuffle) {
		return nil, nil
	}
	s := &shuffler{clock: c, moved: map[string]time.Time{}}
	var all field.ErrorList
	for i := range args.Tiers {
		for k := range args.Tiers[i].Plugins {
			if entry := &args.Tiers[i].Plugins[k]; entry.Enabled(config.EnableVictim) {
				path := field.NewPath("tiers").Index(i).Child("plugins").Index(k)
				all = append(all, s.register(handle, args, entry, path)...)
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
func (s *shuffler) register(handle fwk.Handle, args *config.BatchQueueArgs, entry *config.TierPlugin, path *field.Path) field.ErrorList {
	switch entry.Name {
	case config.PluginTDM:
		decoded, errs := arguments.DecodeTDM(entry, path)
		if len(decoded.RevocableZones) > 0 {
			s.plugins = append(s.plugins, &shuffling{
				every: max(shufflePause, decoded.EvictPeriod),
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
		from, err := load.New(load.Options{Metrics: metrics, Cluster: handle.KubeConfig()})
		if err != nil {
			return field.ErrorList{field.Invalid(section, metrics.Type, err.Error())}
		}
		s.loads = load.NewLoads(from, s.clock, &metrics)
		s.plugins = append(s.plugins, &shuffling{
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
func (s *shuffler) load(n *corev1.Node) *arguments.Utilization {
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

// due returns when the next turn is.
func (s *shuffler) due() time.Time {
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

// run gives the plugins their turns until the context ends.
func (s *shuffler) run(ctx context.Context, e *Engine) {
	if s.loads != nil {
		go s.loads.Follow(ctx)
	}
	for {
		if wait := s.due().Sub(s.clock.Now()); wait > 0 {
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
		s.turn(ctx, e)
	}
}

// turn has the plugins choose whose turn it is, one after the other, and evicts whom they choose. Until that is under way the
// turn is still due.
func (s *shuffler) turn(ctx context.Context, e *Engine) {
	now := s.clock.Now()
	nodes := rebalance.Survey(e.State.Nodes(), e.State.Snapshot(), s.load)
	protection := e.Dispatcher.Protection(e.Evictions.World(""))
	var chosen []rebalance.Choice
	var took []*shuffling
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
		e.Evictions.Evict(ctx, eviction.Shuffle, departures)
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

// Shuffling reports whether pods are being chosen by the action shuffle, or are about to be.
func (e *Engine) Shuffling() bool {
	s := e.rules.Load().shuffler
	return s != nil && e.led() && !s.due().After(e.options.Clock.Now())
}
