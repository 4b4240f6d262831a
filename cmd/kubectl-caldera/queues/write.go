// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// View is a queue by name.
type View struct {
	Name string
	*v1alpha1.QueueViewStatus
}

// Row is a line of the table: a queue, with the branches of the tree before its name.
type Row struct {
	View
	Label string
	// Depth is how many of the table's queues are above it.
	Depth int
}

// write writes a table of queues, those below another one after it.
func write(out io.Writer, views []View, name corev1.ResourceName, all bool) error {
	if all {
		return writeAll(out, views)
	}
	if name == "" {
		name = Shown(views)
	}
	short := strings.ToUpper(string(name[strings.LastIndex(string(name), "/")+1:]))
	table := [][]string{{"QUEUE", short + " HELD", "DUE", "LIMIT", "WAITING", "OLDEST", "STATE"}}
	for _, r := range Tree(views) {
		table = append(table, []string{
			r.Label, Amount(r.Held, name, "0"), Amount(r.Due, name, ""), Limit(r.View, name), strconv.Itoa(int(r.Waiting)),
			leader.Age(r.WaitingSince, r.AsOf.Time), State(r.View, name),
		})
	}
	return leader.Columns(out, "", table)
}

// writeAll writes a line for each resource of a queue.
func writeAll(out io.Writer, views []View) error {
	table := [][]string{{"QUEUE", "RESOURCE", "HELD", "DUE", "LIMIT", "GUARANTEE", "WAITING", "OLDEST", "STATE"}}
	for _, r := range Tree(views) {
		names := Resources(r.Held, r.Due, r.Limit, r.Guarantee)
		if len(names) == 0 {
			names = []corev1.ResourceName{""}
		}
		label, waiting, oldest := r.Label, strconv.Itoa(int(r.Waiting)), leader.Age(r.WaitingSince, r.AsOf.Time)
		for i, name := range names {
			if i > 0 {
				label, waiting, oldest = " ", " ", " "
			}
			table = append(table, []string{
				label, string(name), Amount(r.Held, name, "0"), Amount(r.Due, name, ""), Limit(r.View, name), Amount(r.Guarantee, name, ""),
				waiting, oldest, State(r.View, name),
			})
		}
	}
	return leader.Columns(out, "", table)
}

// Shown is the resource that is shown if nobody says which: the devices that queues are due or hold most of, else cpu.
func Shown(views []View) corev1.ResourceName {
	sums := map[corev1.ResourceName]*resource.Quantity{}
	for _, v := range views {
		for _, list := range []corev1.ResourceList{v.Held, v.Due} {
			for name, q := range list {
				if !strings.Contains(string(name), "/") {
					continue
				}
				if sums[name] == nil {
					sums[name] = &resource.Quantity{}
				}
				sums[name].Add(q)
			}
		}
	}
	most := corev1.ResourceCPU
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if most == corev1.ResourceCPU || sums[name].Cmp(*sums[most]) > 0 {
			most = name
		}
	}
	return most
}

// Resources are the names in some lists.
func Resources(lists ...corev1.ResourceList) []corev1.ResourceName {
	names := map[corev1.ResourceName]bool{}
	for _, list := range lists {
		for name := range list {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Tree has each queue after the one above it. Queues whose parent is not in the list are at the top.
func Tree(views []View) []Row {
	below, known := map[string][]View{}, map[string]bool{}
	for _, v := range views {
		known[v.Name] = true
	}
	for _, v := range views {
		parent := v.Parent
		if !known[parent] || parent == v.Name {
			parent = ""
		}
		below[parent] = append(below[parent], v)
	}
	for _, list := range below {
		slices.SortFunc(list, func(a, b View) int { return cmp.Compare(a.Name, b.Name) })
	}
	var rows []Row
	seen := map[string]bool{}
	var walk func(parent, first, rest string, depth int)
	walk = func(parent, first, rest string, depth int) {
		for i, v := range below[parent] {
			if seen[v.Name] {
				continue
			}
			seen[v.Name] = true
			branch, next := first, rest
			if parent != "" && i == len(below[parent])-1 {
				branch, next = strings.Replace(first, "├", "└", 1), strings.Replace(rest, "│", " ", 1)
			}
			rows = append(rows, Row{v, branch + v.Name, depth})
			if parent == "" {
				walk(v.Name, "├─ ", "│  ", depth+1)
			} else {
				walk(v.Name, next+"├─ ", next+"│  ", depth+1)
			}
		}
	}
	walk("", "", "", 0)
	for _, v := range views {
		if !seen[v.Name] {
			// It is below itself: the scheduler leaves it out, and says why.
			rows = append(rows, Row{v, v.Name, 0})
		}
	}
	return rows
}

// Amount is how much of a resource there is in a list; what is missing if it is not in it.
func Amount(list corev1.ResourceList, name corev1.ResourceName, missing string) string {
	q, ok := list[name]
	if !ok {
		if len(list) > 0 {
			return "0"
		}
		return missing
	}
	return q.String()
}

// Limit is how much of a resource a queue may hold; empty for all there is.
func Limit(v View, name corev1.ResourceName) string {
	if q, ok := v.Limit[name]; ok {
		return q.String()
	}
	if v.LimitOfOthers == v1alpha1.NothingElse || v.LimitOfOthers == v1alpha1.OnlyDevices && !strings.Contains(string(name), "/") {
		return "0"
	}
	return ""
}

// State is whether a queue is open, and how what it holds compares with what it is due.
func State(v View, name corev1.ResourceName) string {
	if v.Fault != nil {
		return "Left out: " + v.Fault.Message
	}
	said := v.State
	if due, ok := v.Due[name]; ok {
		held := v.Held[name]
		switch rest := due.DeepCopy(); {
		case held.Cmp(due) > 0:
			held.Sub(due)
			said += fmt.Sprintf(", borrows %s", &held)
		case held.Cmp(due) < 0 && v.Waiting > 0:
			rest.Sub(held)
			said += fmt.Sprintf(", %s below its due", &rest)
		}
	}
	if r := v.ReservedFor; r != nil {
		said += fmt.Sprintf(", room is reserved for %s/%s", r.Namespace, r.Name)
	}
	return said
}
