// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// mostShrunk is how many failing scenarios are cut down in one run; that takes a few hundred plays each.
	mostShrunk = 5
	// complete is how many seeds have to see everything that can happen.
	complete = 10000
)

// found is what came of many scenarios.
type found struct {
	Played int `json:"played"`
	// Failed are the outcomes of those that failed, by the files they were written to.
	Failed map[string]outcome `json:"failed"`
	// Seen is how often each fault has hit, and each event has come to pass.
	Seen map[string]int `json:"seen"`
	// During counts them by what the scheduler was in the middle of.
	During map[string]int `json:"during"`
	// Turns is how turns ended.
	Turns map[string]int `json:"turns"`
	// Repeated is how many were played twice, and Same how many of these came out the same.
	Repeated int `json:"repeated"`
	Same     int `json:"same"`
	// Differing says of the others where the second play parted from the first.
	Differing map[string]string `json:"differing"`
	// Bound and Evicted are how many pods were, Slowest is how long a cluster took to come to rest once nothing failed any more.
	Bound   int      `json:"bound"`
	Evicted int      `json:"evicted"`
	Slowest duration `json:"slowest"`
	// Took is how long all of it took.
	Took duration `json:"took"`
}

// run plays scenarios, some at a time.
func run(ctx context.Context, program string, o options, progress io.Writer) (*found, error) {
	began := time.Now()
	all := &found{Failed: map[string]outcome{}, Seen: map[string]int{}, During: map[string]int{}, Turns: map[string]int{}, Differing: map[string]string{}}
	var mu sync.Mutex
	seeds := make(chan int)
	workers, ctx := errgroup.WithContext(ctx)
	workers.Go(func() error {
		defer close(seeds)
		for i := range o.Seeds {
			select {
			case seeds <- o.First + i:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range o.Parallel {
		workers.Go(func() error {
			p := newPlayer(program, o, progress)
			defer p.close()
			for seed := range seeds {
				s := draw(uint64(seed))
				played := []outcome{p.play(ctx, s)}
				if seed%o.Repeat == 0 && played[0].Failure == "" {
					played = append(played, p.play(ctx, s))
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				mu.Lock()
				all.add(played)
				failures := len(all.Failed)
				if all.Played%500 == 0 {
					fmt.Fprintf(progress, "%d of %d played, %d failed\n", all.Played, o.Seeds, failures)
				}
				mu.Unlock()
				last := played[len(played)-1]
				if last.Failure == "" {
					continue
				}
				file, err := keep(ctx, p, o, s, last, failures < mostShrunk, progress)
				if err != nil {
					return err
				}
				mu.Lock()
				all.Failed[file] = last
				mu.Unlock()
			}
			return nil
		})
	}
	err := workers.Wait()
	all.Took = duration(time.Since(began))
	return all, err
}

// add counts what became of a scenario, which may have been played a second time.
func (f *found) add(played []outcome) {
	o := played[0]
	if len(played) > 1 {
		f.Repeated++
		if again := played[1]; again.Trace == o.Trace {
			f.Same++
		} else {
			f.Differing[fmt.Sprintf("seed-%d", o.Seed)] = again.Differs
		}
	}
	f.Played++
	f.Bound += o.Bound
	f.Evicted += o.Evicted
	f.Slowest = max(f.Slowest, o.Settled)
	for what, times := range o.Seen {
		f.Seen[what] += times
	}
	for what, times := range o.During {
		f.During[what] += times
	}
	for result, times := range o.Turns {
		f.Turns[result] += times
	}
}

// keep writes a scenario that failed to a file, and what is left of it when it is cut down.
func keep(ctx context.Context, p *player, o options, s *scenario, failed outcome, cut bool, progress io.Writer) (string, error) {
	name := fmt.Sprintf("seed-%d.json", s.Seed)
	file, err := save(o.dir, name, s)
	if err != nil {
		return "", err
	}
	reason, _, _ := strings.Cut(failed.Failure, "\n")
	fmt.Fprintf(progress, "seed %d fails: %s\n  scenario: %s\n", s.Seed, reason, file)
	if !cut {
		return file, nil
	}
	small := shrink(s, func(s *scenario) bool { return ctx.Err() == nil && p.play(ctx, s).Failure != "" })
	if small == nil {
		fmt.Fprintln(progress, "  it does not fail each time it is played")
		return file, nil
	}
	if file, err = save(o.dir, "small-"+name, small); err == nil {
		fmt.Fprintf(progress, "  what it takes: %s (%s)\n", file, small)
	}
	return file, err
}

// report prints what came of all, and fails if a scenario did.
func (f *found) report(out io.Writer, o options) error {
	if f == nil {
		return nil
	}
	unseen := f.unseen()
	if o.out == "json" {
		if err := encode(out, map[string]any{"options": o, "found": f, "unseen": unseen}); err != nil {
			return err
		}
	} else {
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(table, "seeds\tfailed\tpods bound\tevicted\tfaults and events\tkinds unseen\trepeated\tsame\tslowest rest\ttook\t")
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t\n", f.Played, len(f.Failed), f.Bound, f.Evicted, f.happened(), len(unseen), f.Repeated, f.Same,
			time.Duration(f.Slowest).Round(time.Second), time.Duration(f.Took).Round(time.Second))
		if err := table.Flush(); err != nil {
			return err
		}
	}
	var errs []error
	if len(f.Failed) > 0 {
		errs = append(errs, fmt.Errorf("%d of %d scenarios failed: play one again with --replay FILE -v", len(f.Failed), f.Played))
	}
	if f.Played >= complete && len(unseen) > 0 {
		errs = append(errs, fmt.Errorf("never seen: %s", strings.Join(unseen, ", ")))
	}
	return errors.Join(errs...)
}

func (f *found) happened() int {
	n := 0
	for _, times := range f.Seen {
		n += times
	}
	return n
}

// unseen lists what can happen and never did.
func (f *found) unseen() []string {
	can := map[string]bool{}
	for _, kind := range slices.Concat(kinds, failures) {
		for _, moment := range moments {
			can[during(kind, moment)] = true
		}
	}
	for _, ending := range endings {
		can[ending] = true
	}
	for _, request := range requests {
		for _, kind := range failures {
			can[kind+" at "+request] = true
		}
	}
	// They were read before.
	rights, _ := writingRights()
	for _, right := range rights {
		can[right] = true
	}
	for _, seen := range []map[string]int{f.Seen, f.During, f.Turns} {
		for what := range seen {
			delete(can, what)
		}
	}
	return slices.Sorted(maps.Keys(can))
}
