// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Row is a workload as it is now. Rows can be compared with ==.
type Row struct {
	Name, Queue string
	// Pending, Bound, Running and Done count pods; Bound ones are not running yet, Done ones have succeeded.
	Pending, Bound, Running, Done int
	// Min is the minimum of a gang, 0 for pods that start on their own.
	Min int
	// Phase is that of the PodGroup, empty when there is none.
	Phase string
	// Reason says why pods wait; empty when none does.
	Reason string
}

// Rows returns the workloads that exist, in the order in which they are applied.
func (h *History) Rows() []Row {
	var rows []Row
	for _, e := range h.entries {
		if e.seen {
			rows = append(rows, e.row())
		}
	}
	return rows
}

func (e *entry) row() Row {
	n := e.counts()
	r := Row{
		Name: e.Name, Queue: e.Queue, Pending: n[pending], Bound: n[bound], Running: n[running], Done: n[succeeded],
		Phase: string(e.phase),
	}
	if e.Gang {
		r.Min = e.Min
	}
	if n[pending] > 0 {
		r.Reason = e.reason()
	}
	return r
}

// reason is what the PodGroup says or, if it says nothing, the pods.
func (e *entry) reason() string {
	if e.why != "" {
		return e.why
	}
	var whys []string
	for _, p := range e.pods {
		if p.state == pending && p.why != "" {
			whys = append(whys, p.why)
		}
	}
	if len(whys) == 0 {
		return ""
	}
	return slices.Min(whys)
}

// InUse is how much of a resource the pods on nodes ask for.
func (h *History) InUse(resource corev1.ResourceName) int64 {
	total := int64(0)
	for _, e := range h.entries {
		for _, p := range e.pods {
			if p.state == bound || p.state == running {
				amount := p.request[resource]
				total += amount.Value()
			}
		}
	}
	return total
}

// Start is how a workload began.
type Start struct {
	Name string
	// Gang: Pods is the minimum, and all of it starts at once; otherwise Pods is all pods.
	Gang bool
	Pods int
	// Started: the pods have been bound, the last of them At, counted from the beginning.
	Started bool
	At      time.Duration
	// Spread is the time from the first bind to the last.
	Spread time.Duration
	// Nodes is where all pods were bound.
	Nodes string
	// Reason is why it did not start.
	Reason string
}

// Starts returns how the workloads began, in the order in which they are applied.
func (h *History) Starts() []Start {
	starts := make([]Start, 0, len(h.entries))
	for _, e := range h.entries {
		s := Start{Name: e.Name, Gang: e.Gang, Pods: e.Pods, Reason: e.reason()}
		if e.Gang {
			s.Pods = e.Min
		}
		if s.Started = len(e.binds) >= max(1, s.Pods); s.Started {
			first, last := e.binds[0].at, e.binds[max(1, s.Pods)-1].at
			s.At, s.Spread = last.Sub(h.begun), last.Sub(first)
		}
		var nodes []string
		for _, b := range e.binds {
			nodes = append(nodes, b.node)
		}
		s.Nodes = compress(nodes)
		starts = append(starts, s)
	}
	return starts
}

// compress writes node names as what they have in common and ranges: "node-00[03-07,11]".
func compress(names []string) string {
	numbers := map[string]map[string]bool{} // prefix -> numbers as written
	for _, name := range names {
		prefix := strings.TrimRight(name, "0123456789")
		if numbers[prefix] == nil {
			numbers[prefix] = map[string]bool{}
		}
		numbers[prefix][name[len(prefix):]] = true
	}
	var parts []string
	for _, prefix := range slices.Sorted(maps.Keys(numbers)) {
		list := slices.SortedFunc(maps.Keys(numbers[prefix]), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
		})
		if len(list) == 1 {
			parts = append(parts, prefix+list[0])
			continue
		}
		zeros := commonZeros(list)
		for i := range list {
			list[i] = list[i][zeros:]
		}
		parts = append(parts, fmt.Sprintf("%s%s[%s]", prefix, strings.Repeat("0", zeros), strings.Join(ranges(list), ",")))
	}
	return strings.Join(parts, " ")
}

// commonZeros is the number of zeros that all the numbers begin with; one digit is left of each.
func commonZeros(list []string) int {
	least := len(list[0])
	for _, number := range list {
		zeros := len(number) - len(strings.TrimLeft(number, "0"))
		least = min(least, zeros, len(number)-1)
	}
	return max(0, least)
}

// ranges joins neighbours of a sorted list of numbers.
func ranges(list []string) []string {
	var joined []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && follows(list[j], list[j+1]) {
			j++
		}
		if j == i {
			joined = append(joined, list[i])
		} else {
			joined = append(joined, list[i]+"-"+list[j])
		}
		i = j + 1
	}
	return joined
}

func follows(a, b string) bool {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	return errX == nil && errY == nil && y == x+1
}
