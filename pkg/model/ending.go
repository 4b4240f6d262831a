// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ExpectedRuntimeAnnotation says on a pod, or on a PodGroup of all its pods, how long the pod is expected to run: a duration such as 90m.
const ExpectedRuntimeAnnotation = "caldera.dev/expected-runtime"

const (
	// mostRuntime is the longest time that is believed of a pod.
	mostRuntime = 8760 * time.Hour
	// leastGuess is the least time that a pod is expected to run on if nothing is known of it.
	leastGuess = time.Minute
)

// ParseRuntime reads the value of ExpectedRuntimeAnnotation: more than 0, and 8760h at most.
func ParseRuntime(said string) (time.Duration, error) {
	lasts, err := time.ParseDuration(said)
	if err != nil || lasts <= 0 || lasts > mostRuntime {
		return 0, fmt.Errorf("annotation %s is %.100q: write a duration above 0s and up to 8760h, such as 90m; the runtime is unknown until then",
			ExpectedRuntimeAnnotation, said)
	}
	return lasts, nil
}

// ParseDelay reads the value of PreemptionDelayAnnotation: at least 0, and 8760h at most.
func ParseDelay(said string) (time.Duration, error) {
	delay, err := time.ParseDuration(said)
	if err != nil || delay < 0 || delay > mostRuntime {
		return 0, fmt.Errorf("annotation %s is %.100q: write a duration from 0s to 8760h, such as 10m; others may be evicted for the job at once until then",
			PreemptionDelayAnnotation, said)
	}
	return delay, nil
}

// Runtime is how long a pod holds its node. The zero value: nobody knows.
type Runtime struct {
	Lasts time.Duration
	// Enforced: the kubelet stops the pod then, which takes Grace at most. Else somebody has said so.
	Enforced bool
	Grace    time.Duration
}

// RuntimeOf is how long a pod of a job holds its node. The job may be nil. Declared: what is said counts where nothing is enforced.
func RuntimeOf(pod *corev1.Pod, job *Job, declared bool) Runtime {
	if limit := pod.Spec.ActiveDeadlineSeconds; limit != nil && *limit <= int64(mostRuntime/time.Second) {
		return Runtime{Lasts: time.Duration(*limit) * time.Second, Enforced: true, Grace: GracePeriod(pod)}
	}
	if !declared {
		return Runtime{}
	}
	if said, ok := pod.Annotations[ExpectedRuntimeAnnotation]; ok {
		lasts, _ := ParseRuntime(said)
		return Runtime{Lasts: lasts}
	}
	if job != nil && job.Group != nil {
		return Runtime{Lasts: job.Group.ExpectedRuntime}
	}
	return Runtime{}
}

// Runtime is how long the job holds its nodes once its pending tasks start: as long as the one that lasts longest. It is the zero Runtime if
// that of one of them is not known. The job needs its tasks.
func (j *Job) Runtime(declared bool) Runtime {
	longest := Runtime{Enforced: true}
	for _, t := range j.Tasks {
		if !t.Placeable() {
			continue
		}
		r := RuntimeOf(t.Pod, j, declared)
		if r.Lasts == 0 {
			return Runtime{}
		}
		longest.Lasts, longest.Grace = max(longest.Lasts, r.Lasts), max(longest.Grace, r.Grace)
		longest.Enforced = longest.Enforced && r.Enforced
	}
	if longest.Lasts == 0 {
		return Runtime{}
	}
	return longest
}

// Ending is when a pod that holds a node is expected to have left it. It is the zero value for a pod that does not leave by itself.
type Ending struct {
	At time.Time
	// Sure: somebody sees to it. Guessed: nobody has said so.
	Sure, Guessed bool
}

// EndingOf says when a pod is expected to leave its node. The job is the pod's own; it may be nil. If nothing is known of the pod, or it has run for longer
// than was said, it is expected to run for as long again.
func EndingOf(pod *corev1.Pod, job *Job, declared bool, now time.Time) Ending {
	if pod.DeletionTimestamp != nil {
		return Ending{At: Later(pod.DeletionTimestamp.Time, now), Sure: true}
	}
	began := now
	if pod.Status.StartTime != nil && pod.Status.StartTime.Time.Before(now) {
		began = pod.Status.StartTime.Time
	}
	r := RuntimeOf(pod, job, declared)
	if end := began.Add(r.Lasts + r.Grace); r.Lasts > 0 && end.After(now) {
		return Ending{At: end, Sure: r.Enforced}
	}
	if r.Lasts == 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return Ending{}
	}
	return Ending{At: now.Add(max(leastGuess, now.Sub(began))), Guessed: true}
}

// Reached reports whether a time, zero for never, has come.
func Reached(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
