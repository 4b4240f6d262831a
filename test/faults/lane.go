// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/caldera-scheduler/caldera/pkg/simulate/tap"
)

// lane is the way of news to one event handler. It takes a time of its own: else handlers of the same informer, the scheduler's cache and the
// model for instance, would learn at the same moment, and in the order of a map.
type lane struct {
	cache.ResourceEventHandler
	line *line
	name string
	nth  int // of the news
}

// lanes has the news of each handler of a process take its own way.
func (l *line) lanes() tap.Between {
	added := map[string]int{}
	return func(like runtime.Object, handler cache.ResourceEventHandler) (cache.ResourceEventHandler, error) {
		kind := fmt.Sprintf("%T", like)
		added[kind]++
		return &lane{ResourceEventHandler: handler, line: l, name: fmt.Sprintf("%s: handler %d of %s", l.name, added[kind], kind)}, nil
	}
}

// pass lets time go by. News of one handler never overtake each other.
func (n *lane) pass() {
	n.nth++
	time.Sleep(time.Duration(1 + n.line.pick(n.name, n.nth, int(time.Millisecond))))
}

// OnAdd implements cache.ResourceEventHandler.
func (n *lane) OnAdd(o any, initial bool) {
	n.pass()
	n.ResourceEventHandler.OnAdd(o, initial)
}

// OnUpdate implements cache.ResourceEventHandler.
func (n *lane) OnUpdate(before, after any) {
	n.pass()
	n.ResourceEventHandler.OnUpdate(before, after)
}

// OnDelete implements cache.ResourceEventHandler.
func (n *lane) OnDelete(o any) {
	n.pass()
	n.ResourceEventHandler.OnDelete(o)
}
