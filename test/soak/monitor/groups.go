// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// group is a PodGroup and its pods.
//
// A gang is partial when some of its pods are bound, fewer than minMember have a node or have succeeded, and losses do
// not explain the difference. A loss explains one missing pod: one that the program took away with its node while the
// gang had none to spare. It does so until the gang is whole again, or has nothing left on nodes, or a pod is bound that was
// created after the loss: whoever bound it knew of the loss and should have placed all that are missing. An
// eviction explains nothing, with three exceptions. A loss in the moment before it, when the gang still had pods to spare,
// counts: the decision was made when it had. What is evicted by an action on whole gangs from one that is short already
// counts, because such an action may take the rest of it in parts. And when everything goes, nothing is left that could be
// partial.
type group struct {
	key string
	// exists is set while there is a PodGroup; ended once the program has announced the end, or the PodGroup is gone.
	exists, ended bool
	least         int
	queue         *queue
	pods          map[types.UID]*pod
	born, started time.Time
	// missing are the losses that explain a missing pod each, spare those of pods that were to spare.
	missing, spare []time.Time
	// short is since when the gang has been partial; zero when it is not.
	short    time.Time
	reported bool
	// keeps is set while room is kept for it, as its condition says.
	keeps bool
	// batch is the latest of the evictions for the group.
	batch *batch
	// history is what happened to the gang lately.
	history []string
}

// historySize is how much of a gang's history is kept as evidence.
const historySize = 40

func (m *Monitor) group(key string, now time.Time) *group {
	g := m.groups[key]
	if g == nil {
		g = &group{key: key, pods: map[types.UID]*pod{}, born: now, queue: m.queue("")}
		m.groups[key] = g
	}
	return g
}

// keepsRoom reads from a PodGroup whether room is kept for it.
func keepsRoom(pg *volcano.PodGroup) bool {
	return slices.ContainsFunc(pg.Status.Conditions, func(c volcano.PodGroupCondition) bool {
		return c.Type == volcano.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue && c.Reason == string(model.WaitingForVictims)
	})
}

// move puts the group and what its pods hold into another queue.
func (g *group) move(to *queue) {
	if to == g.queue {
		return
	}
	for _, p := range g.pods {
		g.queue.count(p, p.state, -1)
		to.count(p, p.state, 1)
	}
	delete(g.queue.groups, g)
	g.queue = to
}

func (g *group) note(now time.Time, format string, a ...any) {
	g.history = append(g.history, now.Format("15:04:05.000 ")+fmt.Sprintf(format, a...))
	g.history = g.history[max(0, len(g.history)-historySize):]
}

// placed counts the pods on nodes, and those with the ones that have succeeded.
func (g *group) placed() (onNodes, ready int) {
	for _, p := range g.pods {
		switch p.state {
		case held:
			onNodes++
			ready++
		case done:
			ready++
		case unknown, waiting, over:
		}
	}
	return onNodes, ready
}

// bound takes in that a pod has got a node.
func (g *group) bound(p *pod) {
	g.missing = slices.DeleteFunc(g.missing, func(lost time.Time) bool { return lost.Before(p.created) })
	g.spare = slices.DeleteFunc(g.spare, func(lost time.Time) bool { return lost.Before(p.created) })
}

// lose takes in that a pod was lost with its node.
func (g *group) lose(now time.Time) {
	if _, ready := g.placed(); ready+len(g.missing) < g.least {
		g.missing = append(g.missing, now)
	} else {
		g.spare = append(g.spare, now)
	}
}

// robbed takes in that a pod was evicted; since is how old the losses may be of which the decision did not know.
func (g *group) robbed(now, since time.Time) {
	_, ready := g.placed()
	if ready+len(g.missing) >= g.least {
		return
	}
	if i := slices.IndexFunc(g.spare, since.Before); i >= 0 {
		g.spare = slices.Delete(g.spare, i, i+1)
		g.missing = append(g.missing, now)
	}
}

// settle judges whether a gang is whole.
func (m *Monitor) settle(g *group, now time.Time) {
	onNodes, ready := g.placed()
	switch {
	case ready >= g.least && g.exists:
		g.missing = nil
		if g.started.IsZero() && onNodes > 0 {
			g.started = now
			m.figures.Waits[g.queue.name] = append(m.figures.Waits[g.queue.name], now.Sub(g.born))
		}
	case onNodes == 0:
		g.missing, g.spare = nil, nil
	}
	if g.ended || !g.exists || onNodes == 0 || ready+len(g.missing) >= g.least {
		g.short, g.reported = time.Time{}, false
		return
	}
	if g.short.IsZero() {
		g.short = now
	}
	if lasts := now.Sub(g.short); lasts > m.config.Grace && !g.reported {
		g.reported = true
		m.violate(PartialGang, g.short, []string{g.key},
			"PodGroup %s of queue %s: %d pods on nodes, %d placed or succeeded, of minMember %d, since %s; %d losses explain a missing pod each\n%s",
			g.key, g.queue.name, onNodes, ready, g.least, g.short.Format(time.TimeOnly), len(g.missing), g.describe())
	}
}

// describe lists the pods of a gang and what happened to it.
func (g *group) describe() string {
	list := make([]*pod, 0, len(g.pods))
	for _, p := range g.pods {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *pod) int { return cmp.Compare(a.name, b.name) })
	names := map[state]string{unknown: "unknown", waiting: "waits", held: "bound", done: "succeeded", over: "ends"}
	var b strings.Builder
	for _, p := range list {
		fmt.Fprintf(&b, "  %s %s %s, created %s\n", p.name, names[p.state], p.node, p.created.Format(time.TimeOnly))
	}
	for _, line := range g.history {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}
