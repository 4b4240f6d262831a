// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// enough is in how many switches a gang has to be half bound once, and a pod evicted, lest nothing was tried.
const enough = 10

// change is one switch of the leader.
type change struct {
	// From and To are the versions that led before and after it, and Way how the first was made to end.
	From string `json:"from"`
	To   string `json:"to"`
	Way  string `json:"way"`
	// Halves is how many gangs had nodes for fewer pods than their minimum when the leader ended.
	Halves int `json:"halves"`
	// Resumed is how long after that a pod was bound that could be placed all the time.
	Resumed time.Duration `json:"resumed"`
	// Ended is when it was made to end, and Woken when one that stood still was let go on.
	Ended time.Time `json:"ended"`
	Woken time.Time `json:"woken,omitzero"`
}

// result is what a run came to.
type result struct {
	Changes []change `json:"changes"`
	// Replaced is after how many of them the definitions and rights of the new version took the place of those of the earlier one.
	Replaced int      `json:"replaced"`
	Counts   counts   `json:"counts"`
	Faults   []string `json:"faults"`
	// Forbidden are what the new version was forbidden to do by the rights of the earlier one, which is no fault.
	Forbidden []string `json:"forbidden"`
}

// play has the leader change, and waits until all gangs are done. What was seen before an error is returned, too.
func (s *stage) play(ctx context.Context, progress io.Writer) (*result, error) {
	chosen, err := s.chosen()
	if err != nil {
		return nil, err
	}
	r := &result{Replaced: s.Switches / 2}
	for i := range s.Switches {
		if i == r.Replaced {
			if err := s.replace(ctx, s.versions[1]); err != nil {
				return r, fmt.Errorf("replacing definitions and rights: %w", err)
			}
		}
		c, err := s.change(ctx, chosen[i%len(chosen)])
		if err != nil {
			faults, _ := s.judge.verdict()
			return r, errors.Join(fmt.Errorf("switch %d, by %s, from %s: %w", i+1, c.Way, c.From, err), said(faults))
		}
		r.Changes = append(r.Changes, c)
		faults, counts := s.judge.verdict()
		fmt.Fprintf(progress, "switch %2d of %d, by %-6s to %s: %d gangs half bound, turns go on after %.2f s; %d gangs there; so far %d pods bound, %d evicted, %d faults\n",
			i+1, s.Switches, c.Way, c.To, c.Halves, c.Resumed.Seconds(), len(s.load.left()), counts.Bound, counts.Evicted, len(faults))
		if limit := s.Lease + takeover; c.Resumed > limit {
			r.Faults = append(r.Faults, fmt.Sprintf("switch %d, by %s: turns went on after %s, and not within %s", i+1, c.Way, c.Resumed.Round(time.Millisecond), limit))
		}
	}
	return r, s.conclude(ctx, r)
}

// change makes the leader end while gangs are being bound, waits until turns go on, and starts the next scheduler of that version.
func (s *stage) change(ctx context.Context, w way) (change, error) {
	last := s.leads
	if w.finish != nil && !last.version.fenced {
		w = ways()[1] // What it would do when it wakes up is known, and mended.
	}
	c := change{From: last.version.name, To: s.follows.version.name, Way: w.name}
	before, err := s.moment(ctx)
	if err != nil {
		return c, err
	}
	s.leads, s.follows = s.follows, nil
	at := time.Now()
	c.Ended = at
	if err := w.begin(last); err != nil {
		return c, err
	}
	c.Halves = s.judge.halves()
	probe, err := s.probes.create(ctx)
	if err != nil {
		return c, err
	}
	if err := s.await(ctx, "a pod is bound that can be placed", func(context.Context) bool { return !s.probes.since(probe).IsZero() }); err != nil {
		return c, err
	}
	c.Resumed = s.probes.since(probe).Sub(at)
	if err := s.succeeded(ctx, before); err != nil {
		return c, err
	}
	if w.finish != nil {
		c.Woken = time.Now()
		if err := w.finish(ctx, last); err != nil {
			return c, err
		}
	}
	if err := s.probes.remove(ctx, probe); err != nil {
		return c, err
	}
	s.follows, err = s.start(ctx, last.version)
	return c, err
}

// moment lets the leader lead for a while, and returns when a gang is half bound, or none has been for some seconds. It tells who leads.
func (s *stage) moment(ctx context.Context) (holder string, err error) {
	select {
	case <-time.After(s.Between):
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	holder = s.holder(ctx)
	until := time.Now().Add(5 * time.Second)
	for s.judge.halves() == 0 && time.Now().Before(until) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return holder, s.ended()
}

// conclude waits until all gangs are done, and collects what should not have happened.
func (s *stage) conclude(ctx context.Context, r *result) error {
	s.load.stop()
	err := s.await(ctx, "all gangs are done", func(context.Context) bool { return len(s.load.left()) == 0 })
	if err != nil {
		r.Faults = append(r.Faults, fmt.Sprintf("%s, and %d are not: %s", err, len(s.load.left()), strings.Join(s.load.left(), ", ")))
	}
	faults, counts := s.judge.verdict()
	r.Counts, r.Faults = counts, append(r.Faults, faults...)
	if never := s.judge.unstarted(); len(never) > 0 {
		r.Faults = append(r.Faults, "gangs that never started: "+strings.Join(never, ", "))
	}
	if n := s.load.failed.Load(); n > 0 {
		r.Faults = append(r.Faults, fmt.Sprintf("%d requests of the load failed", n))
	}
	// In a few switches on a slow machine there may be none.
	halves := slices.ContainsFunc(r.Changes, func(c change) bool { return c.Halves > 0 })
	if s.Switches >= enough && (!halves || counts.Evicted == 0) {
		r.Faults = append(r.Faults, fmt.Sprintf("%d pods were evicted, and no gang was being bound when the leader ended, or none was evicted: too little happened to judge by", counts.Evicted))
	}
	return s.rights(r)
}

// rights looks whether anything was forbidden. The earlier version has to do with the rights of the new one; the new version, with those of the earlier one, may lack some.
func (s *stage) rights(r *result) error {
	for _, p := range s.all {
		lines, err := p.forbidden()
		if err != nil {
			return err
		}
		for _, line := range lines {
			text := p.version.name + ": " + line
			if p.version == s.versions[1] && p.before {
				r.Forbidden = append(r.Forbidden, text)
			} else {
				r.Faults = append(r.Faults, text)
			}
		}
	}
	return nil
}

// said is an error that tells of faults; nil without any.
func said(faults []string) error {
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("promises that were broken: %d\n  %s", len(faults), strings.Join(faults, "\n  "))
}

// print writes what a run came to, and returns an error if promises were broken.
func (r *result) print(out io.Writer, o options) error {
	if o.out == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return errors.Join(encoder.Encode(r), said(r.Faults))
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WAY\tSWITCHES\tWHILE A GANG WAS BOUND\tTURNS GO ON AFTER, MIN\tMEDIAN\tMAX")
	for _, way := range append([]string{"all"}, slices.Compact(slices.Sorted(slices.Values(o.Ways)))...) {
		var took []time.Duration
		halves := 0
		for _, c := range r.Changes {
			if way == "all" || c.Way == way {
				took = append(took, c.Resumed)
				halves += min(1, c.Halves)
			}
		}
		if len(took) == 0 {
			continue
		}
		slices.Sort(took)
		fmt.Fprintf(table, "%s\t%d\t%d\t%.2f s\t%.2f s\t%.2f s\n", way, len(took), halves,
			took[0].Seconds(), took[len(took)/2].Seconds(), took[len(took)-1].Seconds())
	}
	err := table.Flush()
	fmt.Fprintf(out, "%d gangs, %d pods bound, %d evicted; a gang held nodes for fewer pods than its minimum for %.2f s at most; faults: %d\n",
		r.Counts.Gangs, r.Counts.Bound, r.Counts.Evicted, r.Counts.Longest.Seconds(), len(r.Faults))
	for _, line := range r.Forbidden {
		fmt.Fprintf(out, "forbidden by the rights of the earlier version: %s\n", line)
	}
	return errors.Join(err, said(r.Faults))
}
