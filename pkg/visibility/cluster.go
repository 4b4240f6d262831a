// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

func (v *Views) makeCluster(now time.Time) *v1alpha1.ClusterView {
	totals := v.source.State.Totals()
	view := &v1alpha1.ClusterView{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterName},
		Status: v1alpha1.ClusterViewStatus{
			AsOf: metav1.NewTime(now), Leader: v.source.Leader, Nodes: int32(totals.Nodes),
			Allocatable: totals.Allocatable.List(), Held: totals.Used.List(), Evictions: v.evictionTotals(),
		},
	}
	if v.source.Configuration != nil {
		view.Status.Leader.Configuration = v.source.Configuration()
	}
	byReason := map[string]int32{}
	for _, w := range v.source.Dispatch.Waiting() {
		view.Status.Waiting++
		if w.Reason.Kind != "" {
			byReason[string(w.Reason.Kind)]++
		}
	}
	for reason, n := range byReason {
		view.Status.Reasons = append(view.Status.Reasons, v1alpha1.ReasonCount{Type: reason, Jobs: n})
	}
	slices.SortFunc(view.Status.Reasons, func(a, b v1alpha1.ReasonCount) int {
		return cmp.Or(-cmp.Compare(a.Jobs, b.Jobs), strings.Compare(a.Type, b.Type))
	})
	queues := v.Queues()
	for i := range queues {
		if fault := queues[i].Status.Fault; fault != nil {
			view.Status.LeftOut = append(view.Status.LeftOut, v1alpha1.LeftOutQueue{Name: queues[i].Name, Reason: *fault})
		}
	}
	return view
}

func (v *Views) evictionTotals() v1alpha1.EvictionTotals {
	f := v.source.Ledger.Figures()
	totals := v1alpha1.EvictionTotals{Wasted: int64(f.Wasted), Cycles: int64(f.Cycles), Requested: f.Requested.List(), Taken: f.Evicted.List()}
	for _, n := range f.Decisions {
		totals.Decisions += int64(n)
	}
	for _, n := range f.Evictions {
		totals.Evicted += int64(n)
	}
	return totals
}
