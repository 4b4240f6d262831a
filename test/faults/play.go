// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand" //nolint:depguard // upstream draws from the source that all share, which only this package can seed
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
)

// outcome is what became of a scenario.
type outcome struct {
	Seed uint64 `json:"seed"`
	// Failure is the first thing that should not have happened; empty if nothing did.
	Failure string `json:"failure,omitempty"`
	// Settled is how long the cluster took to come to rest once nothing failed any more.
	Settled duration `json:"settled"`
	// Seen counts the faults that hit something and the events that came to pass.
	Seen map[string]int `json:"seen"`
	// During counts them by what the scheduler was in the middle of, as moments has it.
	During map[string]int `json:"during"`
	// Turns counts how turns ended.
	Turns map[string]int `json:"turns"`
	// Bound and Evicted are how many pods were; those do not count that were deleted by somebody else than the scheduler.
	Bound   int `json:"bound"`
	Evicted int `json:"evicted"`
	// Trace is equal for plays in which the schedulers sent the same requests at the same times.
	Trace uint64 `json:"trace"`
	// Differs says where this play parted from the one before, if that was of the same scenario.
	Differs string `json:"differs,omitempty"`

	trace trace
}

// play lives a scenario, in a bubble with a time of its own.
func play(t *testing.T, s *scenario) (o outcome) {
	o.Seed = s.Seed
	conf, err := configOf(s.Conf)
	if err != nil {
		o.Failure = err.Error()
		return o
	}
	if s.moody() {
		addMoody(conf)
	}
	before, err := counters()
	if err != nil {
		o.Failure = err.Error()
		return o
	}
	// Jitters and UUIDs are the same each time.
	rand.Seed(int64(s.Seed)) //nolint:staticcheck // upstream draws from the source that all share
	uuid.SetRand(rand.New(rand.NewSource(int64(s.Seed))))
	synctest.Test(t, func(*testing.T) {
		p, err := newPlay(s, conf)
		if err != nil {
			o.Failure = err.Error()
			return
		}
		o.Failure = p.live()
		o.Settled = duration(p.settled)
		for _, process := range p.processes {
			process.kill(false)
		}
		// What was sent may still be under way, and time stands still once this returns.
		time.Sleep(time.Minute)
		o.Bound, o.Evicted, o.trace = len(p.world.api.Bound(0)), p.world.docket.entered, p.wire.trace.sorted()
		o.Trace = o.trace.hash()
		o.Seen, o.During = maps.Clone(p.wire.hits), maps.Clone(p.wire.during)
		maps.Copy(o.Seen, p.world.happened)
	})
	after, err := counters()
	o.Turns = map[string]int{}
	for what, times := range after {
		if times > before[what] {
			o.Turns[what] = times - before[what]
		}
	}
	switch {
	case o.Failure != "":
	case err != nil:
		o.Failure = err.Error()
	case o.Turns[swept] > 0:
		o.Failure = fmt.Sprintf("%d jobs were placed by a sweep: what should have woken them did not", o.Turns[swept])
	}
	return o
}

// playing is a scenario that is being played: a cluster, and the schedulers that run.
type playing struct {
	s     *scenario
	conf  *schedulerconfig.KubeSchedulerConfiguration
	world *world
	wire  *wire
	// events are yet to happen; waiting are those for whose moment it is time.
	events, waiting []event
	// processes are the schedulers that run, started is how many have been, restart when the next one starts if one is missing.
	processes []*process
	started   int
	restart   time.Time
	// placed is where pods were at the last look.
	placed map[types.UID]string
	// settled is how long the cluster took to come to rest.
	settled time.Duration
}

func newPlay(s *scenario, conf *schedulerconfig.KubeSchedulerConfiguration) (*playing, error) {
	api, err := memory.New(clock.RealClock{})
	if err != nil {
		return nil, err
	}
	world, err := newWorld(s, api)
	if err != nil {
		return nil, err
	}
	granted, err := granted()
	if err != nil {
		return nil, err
	}
	p := &playing{s: s, conf: conf, world: world, wire: newWire(s, api.Server(), granted), placed: map[types.UID]string{}, restart: time.Now()}
	p.wire.vetoes, p.wire.errs, p.wire.evicts = world.veto, world.errs, world.evicted
	p.events = slices.Clone(s.Events)
	slices.SortStableFunc(p.events, func(a, b event) int { return int(a.At - b.At) })
	return p, nil
}

// live goes through the time of trouble and the time after it, and says what went wrong; empty if nothing did.
func (p *playing) live() string {
	began := time.Now()
	for time.Since(began) < trouble {
		if failure := p.step(began); failure != "" {
			return fmt.Sprintf("after %s: %s", time.Since(began), failure)
		}
	}
	p.waiting = nil
	p.world.heal()
	p.wire.heal()
	healed := time.Now()
	complaint := ""
	for time.Since(healed) < settling {
		for range 10 {
			if failure := p.step(began); failure != "" {
				return fmt.Sprintf("after %s: %s", time.Since(began), failure)
			}
		}
		if complaint = p.complaint(); complaint == "" {
			p.settled = time.Since(healed)
			break
		}
	}
	switch {
	case complaint != "":
		return fmt.Sprintf("%s after all faults have ended: %s", settling, complaint)
	case p.s.Conf == "plain":
		return p.exam(began)
	}
	return ""
}

// step lets a tick pass, with all that happens in it.
func (p *playing) step(began time.Time) string {
	end := time.Now().Add(tick)
	for len(p.events) > 0 && time.Duration(p.events[0].At) < end.Sub(began) {
		e := p.events[0]
		p.events = p.events[1:]
		p.pass(began.Add(time.Duration(e.At)))
		if e.In == "" {
			p.happen(e)
		} else {
			p.waiting = append(p.waiting, e)
		}
	}
	p.pass(end)
	synctest.Wait()
	if err := p.supervise(); err != nil {
		return err.Error()
	}
	p.world.work()
	return cmp.Or(
		p.wire.misused(), p.world.docket.judge(), p.world.overcommitted(p.placed), p.world.overpromised(), p.world.overlooked(), p.idlers(),
	)
}

// idlers says what a process that does not lead remembers; empty if it is nothing.
func (p *playing) idlers() string {
	for _, process := range p.processes {
		if !closed(process.leading) {
			if complaint := process.remembers(p.world.exists); complaint != "" {
				return complaint
			}
		}
	}
	return ""
}

// pass lets time go by. What waits for the scheduler to be in the middle of something happens as soon as it is.
func (p *playing) pass(until time.Time) {
	over := time.After(time.Until(until))
	for {
		select {
		case <-over:
			return
		case moment := <-p.wire.dozing:
			if i := slices.IndexFunc(p.waiting, func(e event) bool { return e.In == moment }); i >= 0 {
				e := p.waiting[i]
				p.waiting = slices.Delete(p.waiting, i, i+1)
				p.happen(e)
			}
		}
	}
}

func (p *playing) happen(e event) {
	if i := p.acting(); i >= 0 {
		p.processes[i].line.note(e.Kind)
	}
	switch e.Kind {
	case crash:
		if i := p.acting(); i >= 0 {
			p.world.happened[crash]++
			p.world.docket.forgive()
			p.end(i, e.N > 0)
			p.restart = time.Now().Add(time.Duration(e.For))
		}
	case parted:
		if i := p.acting(); i >= 0 {
			p.world.happened[parted]++
			until := time.Now().Add(time.Duration(e.For))
			p.processes[i].line.part(until)
			for _, n := range p.s.Nodes {
				p.world.excuse(until, n.Name)
			}
		}
	case watchDropped, watchExpired:
		p.world.happened[e.Kind]++
		if e.Kind == watchExpired {
			p.world.api.Trim()
		}
		p.wire.cut(e.Target)
	case watchDelayed:
		p.world.happened[e.Kind]++
		p.wire.stall(e.Target, time.Duration(e.For))
	default:
		p.world.happen(e)
	}
	if !slices.Contains(harmless, e.Kind) {
		p.world.docket.pardon(time.Duration(e.For))
	}
	if verbose {
		klog.Background().Info("Event", "kind", e.Kind, "target", e.Target, "n", e.N, "for", time.Duration(e.For))
	}
}

// complaint says what is not as it should be by now.
func (p *playing) complaint() string {
	i := p.acting()
	if complaint := p.world.complaint(); complaint != "" || i < 0 {
		return complaint
	}
	core := p.processes[i].core
	return cmp.Or(p.world.untold(), p.processes[i].remembers(p.world.exists), p.world.differs(core.State), p.processes[i].opening(), p.world.miscounts(core.Dispatcher.View().Figures()))
}

// acting is which process acts; negative if none does.
func (p *playing) acting() int {
	return slices.IndexFunc(p.processes, func(p *process) bool { return closed(p.leading) && !closed(p.lost) })
}

// end kills a process.
func (p *playing) end(i int, orphans bool) {
	p.processes[i].kill(orphans)
	p.processes = slices.Delete(p.processes, i, i+1)
	for _, n := range p.s.Nodes {
		p.world.excuse(time.Now(), n.Name)
	}
}

// supervise ends what has lost its lease, and has as many processes run as are to.
func (p *playing) supervise() error {
	if i := slices.IndexFunc(p.processes, func(p *process) bool { return closed(p.lost) }); i >= 0 {
		p.world.happened["lease-lost"]++
		p.end(i, false)
	}
	wanted := 1
	if p.s.Standby {
		wanted = 2
	}
	for len(p.processes) < wanted && !time.Now().Before(p.restart) {
		p.started++
		process, err := startProcess(p.wire, p.conf, fmt.Sprintf("scheduler-%d", p.started), p.s.Standby)
		if err != nil {
			return err
		}
		p.processes = append(p.processes, process)
	}
	return nil
}
