// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/preemption/shuffle"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// Rules are what is decided by: what the actions and tiers of a configuration say about queues and jobs, and the plugins of its profiles as far
// as they are asked.
type Rules struct {
	policies *policy.Set
	// voter is nil unless somebody else is asked about queues and jobs.
	voter Voter
	// shuffler is nil unless somebody takes part in the action shuffle.
	shuffler *shuffle.Shuffler
	// args are the arguments of BatchQueue.
	args *config.BatchQueueArgs

	evicting []config.Action
	// placesOutside: the extender of the tiers is asked about nodes.
	placesOutside bool

	refusers []Refuser
	// domains says inside of which nodes gangs are to be; nil: anywhere.
	domains gang.Domains
	readers []Reader
}

// Reader is a plugin that reads objects by itself, beside scheduling.
type Reader interface {
	fwk.Plugin
	// Behind says what it has not taken in yet; empty when there is nothing.
	Behind() string
}

// Refuser is a plugin that may refuse, at Reserve, a node that its Filter takes. The members of a gang of such pods wait for each
// other before they bind.
type Refuser interface {
	fwk.Plugin
	// MayRefuse reports whether it may do so for a pod.
	MayRefuse(*corev1.Pod) bool
}

// Prepare makes rules of the arguments of BatchQueue and the plugins of the profiles. An error says what is wrong with the
// arguments; the rules in force stay.
func (c *Core) Prepare(ctx context.Context, handle fwk.Handle, args *config.BatchQueueArgs, plugins []fwk.Plugin) (*Rules, error) {
	r := &Rules{args: args}
	outside, err := outsiders{c.options.Policies, c.setup.voters}.build(ctx, handle, args, r)
	if err != nil {
		return nil, err
	}
	if r.policies, err = policy.Compile(args, outside...); err != nil {
		return nil, err
	}
	if r.shuffler, err = shuffle.New(c.options.Clock, handle.KubeConfig(), args); err != nil {
		return nil, err
	}
	for _, action := range args.Actions {
		if action.Evicts() {
			r.evicting = append(r.evicting, action)
		}
	}
	r.use(plugins)
	return r, nil
}

// use takes those of the plugins that are asked.
func (r *Rules) use(plugins []fwk.Plugin) {
	for _, pl := range plugins {
		if refuser, ok := pl.(Refuser); ok {
			r.refusers = append(r.refusers, refuser)
		}
		if domains, ok := pl.(gang.Domains); ok {
			r.domains = domains
		}
		if reader, ok := pl.(Reader); ok {
			r.readers = append(r.readers, reader)
		}
	}
}

// check says why rules cannot be in force: some action evicts, and no plugin does that. What sla would have reserved for overdue jobs is not, and that is
// logged: it may well be in the tiers for its other votes.
func (r *Rules) check(ctx context.Context, evictions bool) error {
	evicting := slices.Clone(r.evicting)
	if r.shuffler != nil {
		evicting = append(evicting, config.Shuffle)
	}
	if len(evicting) > 0 && !evictions {
		return fmt.Errorf("action %s evicts, and plugin %s, which does that, is not enabled: list it at multiPoint, before %s, or leave the action out",
			evicting[0], names.Reclaim, names.Gang)
	}
	reserves := r.policies.Reservation()
	switch {
	case reserves == nil || evictions:
	case reserves.Others:
		return fmt.Errorf("the tiers have %s, and plugin %s, which reserves room, is not enabled: list it at multiPoint, before %s, or take %s out of the tiers",
			config.PluginReservation, names.Reclaim, names.Gang, config.PluginReservation)
	default:
		klog.FromContext(ctx).Info("No room is reserved for jobs whose waiting time is over: that takes the plugin Reclaim, listed at multiPoint before Gang",
			"plugin", config.PluginSLA, "switch", config.EnableJobPipelined)
		r.policies.ReserveNothing()
	}
	return nil
}

// forDispatch are the rules as far as the dispatcher goes.
func (r *Rules) forDispatch() dispatch.Rules {
	return dispatch.Rules{
		Policies: r.policies, AdmissionTimeout: r.args.AdmissionTimeout.Duration, StalledAfter: r.args.StalledAfter.Duration,
		PromiseGrace: r.args.PromiseGrace.Duration,
		HalfTimeout:  r.args.HalfTimeout.Duration, BrokenTimeout: r.args.BrokenTimeout.Duration, ReleaseLost: r.args.ReleaseLost,
		Evicts: len(r.evicting) > 0,
	}
}

// Adopt has it decided by rules that were prepared, from the end of the turn that is on. Then is called at that moment,
// and must not call back. It returns when they are in force, or the context ends.
func (c *Core) Adopt(ctx context.Context, r *Rules, then func()) error {
	if err := r.check(ctx, c.setup.evicts()); err != nil {
		return err
	}
	if err := c.watchQuotas(ctx, r); err != nil {
		return err
	}
	err := c.Dispatcher.Adopt(ctx, r.forDispatch(), func() {
		c.Rules.rules.Store(r)
		c.coolDown(r)
		then()
	})
	if err == nil {
		c.Background.follow(ctx, c.Rules)
	}
	return err
}

// coolDown has a queue not take back what was taken from it for as long as the rules want, unless that is never barred.
func (c *Core) coolDown(r *Rules) {
	if told := c.setup.evictions().QueueCooldown.Duration; told > 0 {
		c.Evictions.Ledger.SetCooldown(max(told, r.policies.Cooldown()))
	}
}

// ReadWithin is how long objects may take to be read that new rules or plugins need and nobody looked at before.
const ReadWithin = 30 * time.Second

// watchQuotas follows the resource quotas once rules look at them, and waits until they are known.
func (c *Core) watchQuotas(ctx context.Context, r *Rules) error {
	if !r.policies.Quotas || c.quotas {
		return nil
	}
	factory := c.handle.SharedInformerFactory()
	synced, err := informer.Quotas(c.State, factory)
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	waiting, stop := context.WithTimeout(ctx, ReadWithin)
	defer stop()
	if !cache.WaitFor(waiting, "", synced) {
		return fmt.Errorf("waiting for resource quotas: %w", context.Cause(waiting))
	}
	c.quotas = true
	return nil
}
