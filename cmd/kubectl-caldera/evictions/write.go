// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// write writes the decisions, with all details if that is wanted.
func write(out io.Writer, decisions []v1alpha1.EvictionDecision, details bool, now time.Time) error {
	if len(decisions) == 0 {
		_, err := fmt.Fprintln(out, "No such evictions are remembered.")
		return err
	}
	if details {
		return writeDetails(out, decisions, now)
	}
	return writeTable(out, decisions, now)
}

// writeTable writes one line a decision.
func writeTable(out io.Writer, decisions []v1alpha1.EvictionDecision, now time.Time) error {
	rows := [][]string{{"AGE", "ACTION", "JOB", "QUEUE", "FROM", "VICTIMS", "OUTCOME"}}
	for i := range decisions {
		d := &decisions[i].Status
		queue := ""
		if d.Job != nil {
			queue = d.Job.Queue
		}
		rows = append(rows, []string{
			leader.Age(&decisions[i].CreationTimestamp, now), d.Action, name(d.Job), queue, strings.Join(VictimQueues(d), ","), Victims(d), d.Outcome,
		})
	}
	return leader.Columns(out, "", rows)
}

// writeDetails writes one paragraph a decision.
func writeDetails(out io.Writer, decisions []v1alpha1.EvictionDecision, now time.Time) error {
	for i := range decisions {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := writeOne(out, &decisions[i].Status, decisions[i].CreationTimestamp, now); err != nil {
			return err
		}
	}
	return nil
}

func writeOne(out io.Writer, d *v1alpha1.EvictionDecisionStatus, at metav1.Time, now time.Time) error {
	outcome := d.Outcome
	if d.Ended != nil {
		outcome += " after " + duration.HumanDuration(max(0, d.Ended.Sub(at.Time)))
	}
	fmt.Fprintf(out, "%s ago: %s%s; %s evicted: %s\n", leader.Age(&at, now), d.Action, purpose(d), Victims(d), outcome)
	if d.Problem != "" {
		fmt.Fprintf(out, "  %s\n", d.Problem)
	}
	rows := [][]string{{"VICTIM", "JOB", "QUEUE", "NODE", "STATE", "RULE"}}
	for i := range d.Victims {
		v := &d.Victims[i]
		rows = append(rows, []string{v.Namespace + "/" + v.Name, name(&v.Job), v.Job.Queue, Where(v), v.State, v.Rule})
	}
	if err := leader.Columns(out, "  ", rows); err != nil {
		return err
	}
	if d.OtherVictims > 0 {
		fmt.Fprintf(out, "  and %s of other namespaces\n", pods(d.OtherVictims))
	}
	for _, k := range d.Kept {
		fmt.Fprintf(out, "  %s kept: %s\n", pods(k.Pods), k.Reason)
	}
	return nil
}

// Where is the node that a victim is on, and to which one it is moved if it is.
func Where(v *v1alpha1.EvictionVictim) string {
	if v.MovesTo == "" {
		return v.Node
	}
	return v.Node + " to " + v.MovesTo
}

// purpose is for whom a decision was made; empty when it was for nobody.
func purpose(d *v1alpha1.EvictionDecisionStatus) string {
	if d.Job == nil {
		return ""
	}
	return fmt.Sprintf(" for %s in queue %s, to start %s", name(d.Job), d.Job.Queue, pods(d.Pods))
}

// VictimQueues are the queues of a decision's victims.
func VictimQueues(d *v1alpha1.EvictionDecisionStatus) []string {
	queues := map[string]bool{}
	for i := range d.Victims {
		queues[d.Victims[i].Job.Queue] = true
	}
	return slices.Sorted(maps.Keys(queues))
}

// Victims are the pods that were evicted, of those that were chosen.
func Victims(d *v1alpha1.EvictionDecisionStatus) string {
	evicted := 0
	for i := range d.Victims {
		if d.Victims[i].Evicted {
			evicted++
		}
	}
	said := fmt.Sprintf("%d/%d", evicted, len(d.Victims))
	if d.OtherVictims > 0 {
		said += fmt.Sprintf(" and %d", d.OtherVictims)
	}
	return said
}

func name(j *v1alpha1.JobReference) string {
	if j == nil {
		return ""
	}
	return j.Namespace + "/" + j.Name
}

func pods(n int32) string { return leader.Count(int(n), "pod", "pods") }
