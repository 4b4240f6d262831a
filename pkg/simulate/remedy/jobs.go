// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
)

const (
	// endsTried is of how many jobs the end is tried, each alone, and endsTold how many of them are told.
	endsTried = 6
	endsTold  = 2
	// endsTogether is how many jobs may have to end together.
	endsTogether = 16
)

// others looks for jobs that could end, those first that hold most of what is missing.
func (s *search) others() error {
	var missing resource.Vector
	for _, t := range s.pending() {
		missing.Add(t.Charge)
	}
	whole := missing.Portion()
	var running []*model.Job
	for key, job := range s.all {
		if key != s.job.Key && job.Placed() > 0 && job.Usage.Allocated.Dominant(whole) > 0 {
			running = append(running, job)
		}
	}
	slices.SortFunc(running, func(a, b *model.Job) int {
		return cmp.Or(cmp.Compare(b.Usage.Allocated.Dominant(whole), a.Usage.Allocated.Dominant(whole)), a.Key.Compare(b.Key))
	})
	told := 0
	for _, job := range running[:min(len(running), endsTried)] {
		found, err := s.try(once(step{OfJobs, fmt.Sprintf("%s ends (%s)", name(job.Key), holds(job)), []change.Change{ends(job)}}))
		if err != nil {
			return err
		}
		if found {
			told++
		}
		if told == endsTold {
			return nil
		}
	}
	if told > 0 || len(running) < 2 {
		return nil
	}
	running = running[:min(len(running), endsTogether)]
	_, err := s.try(measure{kind: OfJobs, most: len(running), guess: 2, of: func(size int) (string, []change.Change) {
		names := make([]string, size)
		changes := make([]change.Change, size)
		for i, job := range running[:size] {
			names[i], changes[i] = name(job.Key), ends(job)
		}
		if size == 1 {
			return names[0] + " ends", changes
		}
		return several(names, "jobs") + " end", changes
	}})
	return err
}

// ends is the end of a job.
func ends(job *model.Job) change.Ends { return change.Ends{Job: name(job.Key), Of: podsOf(job)} }

// podsOf reports whether a pod is one of a job's.
func podsOf(job *model.Job) func(*corev1.Pod) bool {
	names := namesOf(job.Tasks)
	return func(p *corev1.Pod) bool {
		return names[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
	}
}

// name is NAMESPACE/NAME of a job.
func name(key model.JobKey) string { return key.Namespace + "/" + key.Name }

// holds are the devices that a job holds, or its cores, and on how many nodes.
func holds(job *model.Job) string {
	var parts []string
	held := job.Usage.Allocated.Devices()
	if held.IsZero() {
		held = job.Usage.Allocated
	}
	for _, a := range held {
		if a.Value > 0 && (resource.IsExtended(a.Name) || a.Name == corev1.ResourceCPU) {
			parts = append(parts, fmt.Sprintf("%s %s", a.Format(), a.Name))
		}
	}
	return fmt.Sprintf("%s on %s", strings.Join(parts, ", "), count(len(job.Nodes()), "node", "nodes"))
}
