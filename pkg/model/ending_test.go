// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestWhenPodsEnd: what is enforced counts first, then what the pod says, then what its PodGroup says. It is 10:00.
func TestWhenPodsEnd(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	at := func(hour, minute int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 1, 5, hour, minute, 0, 0, time.UTC)}
	}
	group := &model.Job{Group: &model.Group{ExpectedRuntime: 3 * time.Hour}}
	const quick, never = 0, -1
	pod := func(began *metav1.Time, limit int64, said string) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(60))}}
		p.Status.StartTime = began
		switch {
		case limit == never:
			p.Spec.RestartPolicy = corev1.RestartPolicyAlways
		case limit > 0:
			p.Spec.ActiveDeadlineSeconds = &limit
		}
		if said != "" {
			p.Annotations = map[string]string{model.ExpectedRuntimeAnnotation: said}
		}
		return p
	}
	leaving := pod(at(9, 0), 3600, "")
	leaving.DeletionTimestamp = at(10, 1)
	for name, c := range map[string]struct {
		pod      *corev1.Pod
		job      *model.Job
		declared bool
		want     model.Ending
	}{
		"it is stopped":                         {pod: pod(at(9, 30), 3600, ""), want: model.Ending{At: at(10, 31).Time, Sure: true}},
		"it has not started":                    {pod: pod(nil, 3600, ""), want: model.Ending{At: at(11, 1).Time, Sure: true}},
		"it is stopped, and says less":          {pod: pod(at(9, 30), 3600, "40m"), declared: true, want: model.Ending{At: at(10, 31).Time, Sure: true}},
		"it should have been stopped":           {pod: pod(at(8, 0), 3600, ""), want: model.Ending{At: at(12, 0).Time, Guessed: true}},
		"it is stopped after more than a year":  {pod: pod(at(9, 0), 3600*9000, ""), want: model.Ending{At: at(11, 0).Time, Guessed: true}},
		"it says so":                            {pod: pod(at(9, 30), quick, "40m"), declared: true, want: model.Ending{At: at(10, 10).Time}},
		"it says so, and nobody believes it":    {pod: pod(at(9, 30), quick, "40m"), want: model.Ending{At: at(10, 30).Time, Guessed: true}},
		"it says nonsense":                      {pod: pod(at(9, 30), quick, "soon"), declared: true, want: model.Ending{At: at(10, 30).Time, Guessed: true}},
		"it has run for longer than it said":    {pod: pod(at(9, 0), quick, "40m"), declared: true, want: model.Ending{At: at(11, 0).Time, Guessed: true}},
		"its PodGroup says so":                  {pod: pod(at(9, 0), quick, ""), job: group, declared: true, want: model.Ending{At: at(12, 0).Time}},
		"it says otherwise than its PodGroup":   {pod: pod(at(9, 30), quick, "40m"), job: group, declared: true, want: model.Ending{At: at(10, 10).Time}},
		"nobody knows, and it has just started": {pod: pod(at(10, 0), quick, ""), want: model.Ending{At: at(10, 1).Time, Guessed: true}},
		"it is a service":                       {pod: pod(at(9, 0), never, "")},
		"it is a service that says so":          {pod: pod(at(9, 0), never, "2h"), declared: true, want: model.Ending{At: at(11, 0).Time}},
		"it terminates":                         {pod: leaving, want: model.Ending{At: at(10, 1).Time, Sure: true}},
	} {
		if got := model.EndingOf(c.pod, c.job, c.declared, now); got != c.want {
			t.Errorf("%s: it ends %+v, want %+v", name, got, c.want)
		}
	}
}

func TestParseRuntime(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "8760h": 8760 * time.Hour, "0s": 0, "-1h": 0, "8761h": 0, "90": 0, "": 0, "1d": 0,
	} {
		got, err := model.ParseRuntime(said)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is read as %s, %v, want %s", said, got, err, want)
		}
	}
}

// TestAJobRunsAsLongAsItsLongestPod: nothing is known of a job if it is not known of one of its pods that wait.
func TestAJobRunsAsLongAsItsLongestPod(t *testing.T) {
	t.Parallel()
	task := func(status model.Status, limit int64) *model.Task {
		p := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(5))}}
		if limit > 0 {
			p.Spec.ActiveDeadlineSeconds = &limit
		}
		return &model.Task{Pod: p, Status: status}
	}
	for name, c := range map[string]struct {
		tasks []*model.Task
		want  model.Runtime
	}{
		"the longest": {
			tasks: []*model.Task{task(model.Pending, 60), task(model.Pending, 90)},
			want:  model.Runtime{Lasts: 90 * time.Second, Enforced: true, Grace: 5 * time.Second},
		},
		"one is not known": {tasks: []*model.Task{task(model.Pending, 60), task(model.Pending, 0)}},
		"one that runs is not known": {
			tasks: []*model.Task{task(model.Pending, 60), task(model.Running, 0)},
			want:  model.Runtime{Lasts: time.Minute, Enforced: true, Grace: 5 * time.Second},
		},
		"nobody waits": {tasks: []*model.Task{task(model.Running, 60)}},
	} {
		if got := (&model.Job{Tasks: c.tasks}).Runtime(false); got != c.want {
			t.Errorf("%s: it runs for %+v, want %+v", name, got, c.want)
		}
	}
}
