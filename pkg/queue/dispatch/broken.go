// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// A gang is broken while some members hold nodes, and too few. One that was never whole is half placed: a bind was refused, the scheduler
// was killed between two binds, or another one placed some. It runs nothing. One that was whole has lost members since, and may run on or
// not. Both are completed before all else. If that does not succeed for long, a half gang is released, so that others can have the nodes,
// and it starts whole or not at all; one that lost members is no longer protected from those who need its room.

// Break is how a gang is broken.
type Break string

const (
	// Half is that of a gang that was never whole.
	Half Break = "half"
	// Lost is that of a gang that was whole, and has fewer members than it started with and its PodGroup asks for.
	Lost Break = "lost"
)

// broken is what is kept of a broken gang until it is whole.
type broken struct {
	how Break
	// since is when it became so, or was last released; zero while no member holds a node. Began is when it became so.
	since, began time.Time
	// counted is up to when it is in the totals, and held what its members on nodes have asked for since.
	counted time.Time
	held    resource.Vector
	// terms are how long it may be broken, and what comes then, warned those of which it was told when half of the time was over.
	terms, warned terms
	// asked: its members were to be evicted since it last held nothing. Holding is how many of them had nodes then, zero once one has gone.
	asked   bool
	holding int
	// lapsed: its minimum protects it no more, which others were told.
	lapsed bool
	// released is how often one has. A request that the API server refuses or does not get changes nothing, and does not count.
	released int
}

// late reports whether its time is over.
func (b *broken) late(now time.Time) bool {
	return b.asked || b.terms.after > 0 && !b.since.IsZero() && !now.Before(b.since.Add(b.terms.after))
}

// brokenGangs are the gangs that are broken, or were and have been released. All methods are called with the dispatcher's lock held.
type brokenGangs struct {
	cfg    *Config
	alarms alarms
	outbox *outbox
	gangs  map[model.JobKey]broken
	// lapsed: one is not protected any more, which is yet to be told to those that wait for room.
	lapsed bool
	// totals are what they came to.
	totals BrokenTotals
}

func newBrokenGangs(cfg *Config, alarms alarms, outbox *outbox) brokenGangs {
	return brokenGangs{
		cfg: cfg, alarms: alarms, outbox: outbox, gangs: map[model.JobKey]broken{},
		totals: BrokenTotals{Seconds: map[Break]float64{Half: 0, Lost: 0}, Held: map[corev1.ResourceName]float64{}},
	}
}

// late reports whether a job is broken and its time is over.
func (g *brokenGangs) late(key model.JobKey) bool {
	b := g.gangs[key]
	return b.late(g.cfg.Clock.Now())
}

// terms are how long a gang may be broken, zero for ever, and whether it is released then; else it loses its protection.
type terms struct {
	after   time.Duration
	release bool
}

// Stage is how far the time of a broken gang has come.
type Stage string

const (
	// HalfTime says that half of its time is over.
	HalfTime Stage = "half time"
	// TimeOver says that its members are to be evicted.
	TimeOver Stage = "time over"
	// WholeAgain says that it is broken no more.
	WholeAgain Stage = "whole again"
	// Endless says that its PodGroup wants them evicted when its time is over, which never comes.
	Endless Stage = "endless"
)

// Trouble is what is to be told of a gang that is broken, or done about it.
type Trouble struct {
	Job   model.JobKey
	How   Break
	Stage Stage
	// Lasted is for how long it has been broken, After for how long it may be; zero for ever.
	Lasted, After time.Duration
	// Release: its members are evicted when its time is over.
	Release bool
}

// breakOf tells how a job is broken; empty when it is not.
func breakOf(job *model.Job) Break {
	switch {
	case job.Half():
		return Half
	case job.Partial() && job.Start.Tasks > 0:
		return Lost
	}
	return ""
}

// termsOf returns how long a job may be broken, and what comes then: its PodGroup says it, or else the rules do. Where the time never comes
// only its PodGroup can mean a release.
func (r *Rules) termsOf(job *model.Job, how Break) terms {
	said := job.Terms()
	if how == Half {
		return terms{after: said.HalfTimeout.Or(r.HalfTimeout), release: true}
	}
	after := said.BrokenTimeout.Or(r.BrokenTimeout)
	return terms{after: after, release: said.ReleaseLost.Or(r.ReleaseLost && after > 0)}
}

// watch keeps since when a job, nil if it is gone, is broken, and does what is due. It returns how often the job has been released if it has
// given something back just now, and 0 otherwise.
func (g *brokenGangs) watch(key model.JobKey, job *model.Job) (released int) {
	b, known := g.gangs[key]
	g.count(&b)
	if job == nil || job.Whole() {
		g.mended(key, job, b)
		delete(g.gangs, key)
		return 0
	}
	if g.gaveBack(job, &b) {
		released = b.released
	}
	if job.Placed() == 0 {
		if b = (broken{released: b.released}); known {
			g.gangs[key] = b
		}
		return released
	}
	now, how := g.cfg.Clock.Now(), breakOf(job)
	if how == "" {
		// The binds that would complete it may be refused.
		if known {
			g.gangs[key] = b
		}
		return released
	}
	if b.since.IsZero() {
		b.began, b.counted = now, now
	}
	b.held = job.OwnHalf()
	if b.since.IsZero() || b.how != how {
		b.how, b.since, b.warned, b.lapsed = how, now, terms{}, false
	}
	if terms := g.cfg.termsOf(job, how); terms != b.terms {
		b.terms, b.lapsed = terms, false
	}
	g.gangs[key] = b
	g.judge(job, b)
	return released
}

// gaveBack reports whether a gang has given back something since it was to, and counts it.
func (g *brokenGangs) gaveBack(job *model.Job, b *broken) bool {
	if job.Counts.Confirmed() >= b.holding {
		return false
	}
	b.holding = 0
	b.released++
	g.cfg.Recorder.Released(b.how)
	return true
}

// BrokenTotals are what broken gangs came to so far.
type BrokenTotals struct {
	// Seconds is for how long gangs were broken, by how they were.
	Seconds map[Break]float64
	// Held is what their members on nodes had asked for, times the seconds, in the base units of resources.
	Held map[corev1.ResourceName]float64
}

// count brings the totals up to date with a gang.
func (g *brokenGangs) count(b *broken) {
	if b.since.IsZero() {
		return
	}
	now := g.cfg.Clock.Now()
	seconds := now.Sub(b.counted).Seconds()
	b.counted = now
	g.totals.Seconds[b.how] += seconds
	for _, a := range b.held {
		g.totals.Held[a.Name] += float64(a.Value) * seconds
	}
}

// sum returns the totals, brought up to date with all gangs.
func (g *brokenGangs) sum() BrokenTotals {
	for key, b := range g.gangs {
		g.count(&b)
		g.gangs[key] = b
	}
	return BrokenTotals{Seconds: maps.Clone(g.totals.Seconds), Held: maps.Clone(g.totals.Held)}
}

// leastTold is how long a gang must have been broken for it to be told that it is whole again.
const leastTold = time.Second

// mended tells that a gang, nil if it is gone, is broken no more.
func (g *brokenGangs) mended(key model.JobKey, job *model.Job, b broken) {
	if job == nil || b.since.IsZero() || g.cfg.Clock.Since(b.began) < leastTold {
		return
	}
	g.outbox.trouble(Trouble{Job: key, How: b.how, Stage: WholeAgain, Lasted: g.cfg.Clock.Since(b.began)})
}

// judge does what is due with a gang that has been broken for so long.
func (g *brokenGangs) judge(job *model.Job, b broken) {
	key, now, after := job.Key, g.cfg.Clock.Now(), b.terms.after
	lasted := now.Sub(b.since)
	due := Trouble{Job: key, How: b.how, Stage: HalfTime, Lasted: lasted, After: after, Release: b.terms.release}
	switch {
	case after == 0:
		if b.how == Half || !b.terms.release || b.warned == b.terms {
			return
		}
		b.warned, due.Stage = b.terms, Endless
	case lasted < after/2:
		g.alarms.set(key, now.Add(after/2-lasted))
		return
	case lasted < after:
		if g.alarms.set(key, now.Add(after-lasted)); b.warned == b.terms {
			return
		}
		b.warned = b.terms
	case b.terms.release:
		due.Stage = TimeOver
		b.since, b.warned = now, terms{}
		if !b.asked || b.holding > 0 {
			b.asked, b.holding = true, job.Counts.Confirmed()
		}
		g.alarms.set(key, now.Add(after/2))
	default:
		// Those who looked for its room look again: see Trial.Again. Others are told.
		if b.lapsed {
			return
		}
		b.lapsed, g.lapsed = true, true
		g.gangs[key] = b
		return
	}
	g.gangs[key] = b
	g.outbox.trouble(due)
}

// lapses tells from when on broken gangs are not protected by their minimum any more: those that are half placed, and those whose release
// was refused, at once; those that lost members when they have been broken for long.
func (g *brokenGangs) lapses() map[model.JobKey]time.Time {
	at := map[model.JobKey]time.Time{}
	for key, b := range g.gangs {
		switch after := b.terms.after; {
		case b.since.IsZero():
		case b.how == Half, b.asked, b.released > 0:
			at[key] = b.since
		case after > 0:
			at[key] = b.since.Add(after)
		}
	}
	return at
}
