// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"time"

	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// Verdict compares what happened with what should have.
type Verdict struct {
	// Missing is what has not happened yet, one sentence a workload. When it is empty the demo is over.
	Missing []string
	// Broken is what must never happen and did.
	Broken []string
}

// Verdict judges what has been seen until now.
func (h *History) Verdict(now time.Time) Verdict {
	var v Verdict
	for _, e := range h.entries {
		if missing := e.missing(); missing != "" {
			v.Missing = append(v.Missing, e.Name+": "+missing)
		}
		for _, broken := range e.broken(now, h.partialLimit) {
			v.Broken = append(v.Broken, e.Name+": "+broken)
		}
	}
	return v
}

// missing says what the workload has yet to do; empty when it has done all.
func (e *entry) missing() string {
	n := e.counts()
	switch {
	case e.Impossible:
		if e.why == "" {
			return "it has not said why it cannot start"
		}
	case e.Lasts:
		if n[running] < e.Pods {
			return fmt.Sprintf("%d of %d pods are running", n[running], e.Pods)
		}
	case n[succeeded] < e.Pods:
		return fmt.Sprintf("%d of %d pods have run", n[succeeded], e.Pods)
	case e.Gang && e.phase != volcano.PodGroupCompleted:
		return fmt.Sprintf("all pods have run and the phase of its PodGroup is %q", e.phase)
	}
	return ""
}

func (e *entry) broken(now time.Time, partialLimit time.Duration) (list []string) {
	if e.Impossible && len(e.binds) > 0 {
		list = append(list, fmt.Sprintf("%d pods of it were bound, of which none fits a node", len(e.binds)))
	}
	if partial := e.longestPartial(now); partial > partialLimit {
		list = append(list, fmt.Sprintf("it held nodes for fewer than its minimum of %d pods for %.1f s", e.Min, partial.Seconds()))
	}
	if n := e.counts()[failed]; n > 0 {
		list = append(list, fmt.Sprintf("%d pods failed", n))
	}
	return list
}
