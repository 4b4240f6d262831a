// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// way is how a leader is made to end.
type way struct {
	name, what string
	// begin makes it end. Afterwards it does nothing any more.
	begin func(*scheduler) error
	// finish is called once another one leads; nil for nothing.
	finish func(context.Context, *scheduler) error
}

func ways() []way {
	return []way{
		{
			name: "stop", what: "it is told to end, as in a rolling update, and gives the lease back",
			begin: func(p *scheduler) error {
				_, err := p.Stop()
				return err
			},
		},
		{name: "kill", what: "it is killed, and its lease has to run out", begin: func(p *scheduler) error { return p.Kill() }},
		{
			name: "freeze", what: "it stands still for longer than its lease, and wakes up when another one leads; a version that is known to do harm then is killed",
			begin: func(p *scheduler) error { return p.Freeze() }, finish: wake,
		},
	}
}

func wayNames() []string {
	var names []string
	for _, w := range ways() {
		names = append(names, w.name)
	}
	return names
}

// chosen are the ways that the flags name.
func (o *options) chosen() ([]way, error) {
	var chosen []way
	for _, name := range o.Ways {
		i := slices.IndexFunc(ways(), func(w way) bool { return w.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--ways has %q, which is unknown: use %v", name, wayNames())
		}
		chosen = append(chosen, ways()[i])
	}
	if len(chosen) == 0 {
		return nil, errors.New("--ways is empty: nobody would lead after the first")
	}
	return chosen, nil
}

// wake lets a leader that was frozen go on. It must see that it does not lead any more, and end.
func wake(ctx context.Context, p *scheduler) error {
	if err := p.Thaw(); err != nil {
		return err
	}
	select {
	case <-p.Exited():
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s leads no more, and has not ended %s after it woke up; see %s", p.version.name, patience, p.LogFile)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
