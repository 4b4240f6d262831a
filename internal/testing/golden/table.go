// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Table is an output in columns.
type Table struct{ rows []string }

// Row adds a row.
func (t *Table) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
		if texts[i] == "" {
			texts[i] = "-"
		}
	}
	t.rows = append(t.rows, strings.Join(texts, "\t"))
}

// String writes the rows with aligned columns.
func (t *Table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		fmt.Fprintln(w, row)
	}
	if err := w.Flush(); err != nil {
		return err.Error()
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// Number writes a number with at most six decimals and no zeros behind them.
func Number(f float64) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(f, 'f', 6, 64), "0"), ".")
}

// Portion writes amounts as users write quantities, "cpu=2.5 memory=4Gi": cores, bytes with a binary suffix, counts.
// No amounts are "none".
func Portion(p resource.Portion) string {
	if len(p) == 0 {
		return "none"
	}
	parts := make([]string, 0, len(p))
	for _, a := range p {
		parts = append(parts, string(a.Name)+"="+quantity(a.Name, a.Value))
	}
	return strings.Join(parts, " ")
}

// Vector writes whole amounts like a portion.
func Vector(v resource.Vector) string { return Portion(v.Portion()) }

// Limit writes the bounds of a limit, and "others unlimited" when it does not bound what it does not name. That nodes do not bound devices
// goes without saying.
func Limit(l resource.Limit) string {
	switch {
	case l.Unnamed != resource.Unlimited:
		return Portion(l.Amounts)
	case len(l.Amounts) == 0:
		return "unlimited"
	}
	return Portion(l.Amounts) + " others unlimited"
}

func quantity(name corev1.ResourceName, value float64) string {
	switch name {
	case corev1.ResourceCPU:
		return Number(value / 1000)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		for i, suffix := range []string{"Ti", "Gi", "Mi", "Ki"} {
			if unit := math.Pow(1024, float64(4-i)); value >= unit {
				return Number(value/unit) + suffix
			}
		}
	}
	return Number(value)
}
