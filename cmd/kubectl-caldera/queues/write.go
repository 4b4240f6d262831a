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

// view is a queue by name.
type view struct {
	name string
	*v1alpha1.QueueViewStatus
}

// row is a line of the table: a queue, with the branches of the tree before its name.
type row struct {
	view
	label string
}

// write writes a table of queues, those below another one after it.
func write(out io.Writer, views []view, name corev1.ResourceName, all bool) error {
	if all {
		return writeAll(out, views)
	}
	if name == "" {
		name = shown(views)
	}
	short := strings.ToUpper(string(name[strings.LastIndex(string(name), "/")+1:]))
	table := [][]string{{"QUEUE", short + " HELD", "DUE", "LIMIT", "WAITING", "OLDEST", "STATE"}}
	for _, r := range tree(views) {
		table = append(table, []string{
			r.label, amount(r.Held, name, "0"), amount(r.Due, name, ""), limit(r.view, name), strconv.Itoa(int(r.Waiting)),
			leader.Age(r.WaitingSince, r.AsOf.Time), state(r.view, name),
		})
	}
	return leader.Columns(out, "", table)
}

// writeAll writes a line for each resource of a queue.
func writeAll(out io.Writer, views []view) error {
	table := [][]string{{"QUEUE", "RESOURCE", "HELD", "DUE", "LIMIT", "GUARANTEE", "WAITING", "OLDEST", "STATE"}}
	for _, r := range tree(views) {
		names := resources(r.Held, r.Due, r.Limit, r.Guarantee)
		if len(names) == 0 {
			names = []corev1.ResourceName{""}
		}
		label, waiting, oldest := r.label, strconv.Itoa(int(r.Waiting)), leader.Age(r.WaitingSince, r.AsOf.Time)
		for i, name := range names {
			if i > 0 {
				label, waiting, oldest = " ", " ", " "
			}
			table = append(table, []string{
				label, string(name), amount(r.Held, name, "0"), amount(r.Due, name, ""), limit(r.view, name), amount(r.Guarantee, name, ""),
				waiting, oldest, state(r.view, name),
			})
		}
	}
	return leader.Columns(out, "", table)
}

// shown is the resource that is shown if nobody says which: the devices that queues are due or hold most of, else cpu.
func shown(views []view) corev1.ResourceName {
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

// resources are the names in some lists.
func resources(lists ...corev1.ResourceList) []corev1.ResourceName {
	names := map[corev1.ResourceName]bool{}
	for _, list := range lists {
		for name := range list {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// tree has each queue after the one above it. Queues whose parent is not in the list are at the top.
func tree(views []view) []row {
	below, known := map[string][]view{}, map[string]bool{}
	for _, v := range views {
		known[v.name] = true
	}
	for _, v := range views {
		parent := v.Parent
		if !known[parent] || parent == v.name {
			parent = ""
		}
		below[parent] = append(below[parent], v)
	}
	for _, list := range below {
		slices.SortFunc(list, func(a, b view) int { return cmp.Compare(a.name, b.name) })
	}
	var rows []row
	seen := map[string]bool{}
	var walk func(parent, first, rest string)
	walk = func(parent, first, rest string) {
		for i, v := range below[parent] {
			if seen[v.name] {
				continue
			}
			seen[v.name] = true
			branch, next := first, rest
			if parent != "" && i == len(below[parent])-1 {
				branch, next = strings.Replace(first, "├", "└", 1), strings.Replace(rest, "│", " ", 1)
			}
			rows = append(rows, row{v, branch + v.name})
			if parent == "" {
				walk(v.name, "├─ ", "│  ")
			} else {
				walk(v.name, next+"├─ ", next+"│  ")
			}
		}
	}
	walk("", "", "")
	for _, v := range views {
		if !seen[v.name] {
			// It is below itself: the scheduler leaves it out, and says why.
			rows = append(rows, row{v, v.name})
		}
	}
	return rows
}

// amount is how much of a resource there is in a list; what is missing if it is not in it.
func amount(list corev1.ResourceList, name corev1.ResourceName, missing string) string {
	q, ok := list[name]
	if !ok {
		if len(list) > 0 {
			return "0"
		}
		return missing
	}
	return q.String()
}

func limit(v view, name corev1.ResourceName) string {
	if q, ok := v.Limit[name]; ok {
		return q.String()
	}
	if v.LimitOfOthers == v1alpha1.NothingElse || v.LimitOfOthers == v1alpha1.OnlyDevices && !strings.Contains(string(name), "/") {
		return "0"
	}
	return ""
}

// state is whether a queue is open, and how what it holds compares with what it is due.
func state(v view, name corev1.ResourceName) string {
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
