// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
)

// The parts of a bar.
const (
	within   = "="
	beyond   = "+"
	missing  = "."
	limitTo  = "|"
	legendOf = within + " held   " + beyond + " held beyond its due   " + missing + " due and not held   " + limitTo + " limit"
)

// WriteBars reads the queues and draws what they hold, are due and may hold of one resource, in bars that take so many characters at most.
func WriteBars(ctx context.Context, f *leader.Flags, client *leader.Client, out io.Writer, name string, width int) error {
	_, views, note, err := Read(ctx, f, client)
	if err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintln(out, note)
	}
	return writeBars(out, views, corev1.ResourceName(name), width)
}

func writeBars(out io.Writer, views []View, name corev1.ResourceName, width int) error {
	if len(views) == 0 {
		_, err := fmt.Fprintln(out, "There are no queues.")
		return err
	}
	if name == "" {
		name = Shown(views)
	}
	rows := Tree(views)
	most := resource.Quantity{}
	for _, r := range rows {
		for _, list := range []corev1.ResourceList{r.Held, r.Due, r.Limit} {
			if q := list[name]; q.Cmp(most) > 0 {
				most = q
			}
		}
	}
	table := [][]string{{"QUEUE", strings.ToUpper(string(name)), "HELD", "DUE", "LIMIT", "WAITING", "OLDEST"}}
	for _, r := range rows {
		table = append(table, []string{
			r.Label, bar(r.View, name, most.AsApproximateFloat64(), width), Amount(r.Held, name, "0"), Amount(r.Due, name, ""), Limit(r.View, name),
			strconv.Itoa(int(r.Waiting)), leader.Age(r.WaitingSince, r.AsOf.Time),
		})
	}
	if err := leader.Columns(out, "", table); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, legendOf)
	return err
}

// bar draws a queue: what it holds, then what is due to it besides, up to its limit. All bars of a table have one scale.
func bar(v View, name corev1.ResourceName, most float64, width int) string {
	if most <= 0 {
		return ""
	}
	place := func(list corev1.ResourceList) int {
		q := list[name]
		n := q.AsApproximateFloat64() / most * float64(width)
		if n > 0 && n < 1 {
			// What is there is seen.
			return 1
		}
		return int(n + 0.5)
	}
	held, due := place(v.Held), place(v.Due)
	if _, divided := v.Due[name]; !divided {
		due = held
	}
	drawn := strings.Repeat(within, min(held, due)) + strings.Repeat(beyond, max(0, held-due)) + strings.Repeat(missing, max(0, due-held))
	if _, limited := v.Limit[name]; limited {
		drawn += strings.Repeat(" ", max(0, place(v.Limit)-len(drawn))) + limitTo
	}
	return drawn
}
