// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package podstatus_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/upstream/podstatus"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
)

// takes is how long the API server takes for a write of namespace slow.
const takes = 10 * time.Second

// server answers writes of one namespace late, and counts all.
type server struct {
	*memory.Server
	t      *testing.T
	client kubernetes.Interface
	writer *podstatus.Writer
	writes atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch {
		s.writes.Add(1)
		if strings.Contains(r.URL.Path, "/namespaces/slow/") {
			time.Sleep(takes)
		}
	}
	return s.Server.RoundTrip(r)
}

// profile is as much of a profile as is asked for.
type profile struct {
	framework.Framework
	client kubernetes.Interface
	theirs fwk.APICacher
}

// ClientSet implements fwk.Handle.
func (p profile) ClientSet() kubernetes.Interface { return p.client }

// APICacher implements fwk.Handle.
func (p profile) APICacher() fwk.APICacher { return p.theirs }

// failure is a pod that found no node, as upstream tells it.
type failure struct {
	pod       *corev1.Pod
	message   string
	nominated *fwk.NominatingInfo
}

// play runs a story in which pods find no node.
func play(t *testing.T, theirs fwk.APICacher, pods []*corev1.Pod, story func(s *server, fails func(failure), now func(*corev1.Pod) *corev1.PodStatus)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api, err := memory.New(clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pods {
			if err := api.Add(p.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		s := &server{Server: api.Server(), t: t}
		client, err := kubernetes.NewForConfig(memory.Config(s))
		if err != nil {
			t.Fatal(err)
		}
		s.client = client
		sched := &scheduler.Scheduler{StopEverything: t.Context().Done()}
		sched.FailureHandler = func(_ context.Context, f framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, _ time.Time) {
			condition := &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: status.Message()}
			if _, err := f.APICacher().PatchPodStatus(info.Pod, []*corev1.PodCondition{condition}, nominating); err != nil {
				t.Error(err)
			}
		}
		s.writer = podstatus.Install(clock.RealClock{}, sched)
		story(s, func(f failure) {
			t.Helper()
			info, err := framework.NewPodInfo(f.pod)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			sched.FailureHandler(t.Context(), profile{client: client, theirs: theirs}, &framework.QueuedPodInfo{PodInfo: info},
				fwk.NewStatus(fwk.Unschedulable, f.message), f.nominated, began)
			if took := time.Since(began); took != 0 {
				t.Errorf("the scheduler waits for %s", took)
			}
		}, func(p *corev1.Pod) *corev1.PodStatus {
			now, err := client.CoreV1().Pods(p.Namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return &now.Status
		})
	})
}

func pod(namespace, name string) *corev1.Pod { return builders.Pod(namespace, name).Obj() }

// TestNobodyWaitsForWrites: of a pod that fails again while it is written, the last is written, and what the failures between said of the nominated node.
func TestNobodyWaitsForWrites(t *testing.T) {
	slow, other := pod("slow", "a"), pod("others", "b")
	play(t, nil, []*corev1.Pod{slow, other}, func(s *server, fails func(failure), now func(*corev1.Pod) *corev1.PodStatus) {
		fails(failure{pod: slow, message: "first"})
		fails(failure{pod: other, message: "no room"})
		synctest.Wait()
		fails(failure{pod: slow, message: "second", nominated: &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: "node"}})
		fails(failure{pod: slow, message: "third"})
		if c := now(other).Conditions; len(c) != 1 || c[0].Message != "no room" {
			t.Errorf("the other pod has %+v, want why it does not fit, at once", c)
		}
		time.Sleep(takes + time.Second)
		if status := now(slow); len(status.Conditions) != 1 || status.Conditions[0].Message != "first" || status.NominatedNodeName != "" {
			t.Errorf("the pod has %+v after the first write", status)
		}
		if s.writer.Idle() {
			t.Error("the writer is idle before the second write")
		}
		time.Sleep(takes)
		if status := now(slow); len(status.Conditions) != 1 || status.Conditions[0].Message != "third" || status.NominatedNodeName != "node" {
			t.Errorf("the pod has %+v after the second write, want what was said last", status)
		}
		if n := s.writes.Load(); n != 3 || !s.writer.Idle() {
			t.Errorf("%d writes (idle: %t), want 3 and no more", n, s.writer.Idle())
		}
		slow.Status = *now(slow)
		fails(failure{pod: slow, message: "third"})
		time.Sleep(2 * takes)
		if n := s.writes.Load(); n != 3 {
			t.Errorf("%d writes, want none of what the pod says already", n-3)
		}
	})
}

// TestAPodThatHasANodeByThenIsNotToldThatItHasNone: it gets one while the write is on its way. Another one is changed by somebody else meanwhile.
func TestAPodThatHasANodeByThenIsNotToldThatItHasNone(t *testing.T) {
	bound, changed := pod("slow", "bound"), pod("slow", "changed")
	play(t, nil, []*corev1.Pod{bound, changed}, func(s *server, fails func(failure), now func(*corev1.Pod) *corev1.PodStatus) {
		// As the scheduler knows them.
		for _, p := range []*corev1.Pod{bound, changed} {
			live, err := s.client.CoreV1().Pods(p.Namespace).Get(s.t.Context(), p.Name, metav1.GetOptions{})
			if err != nil {
				s.t.Fatal(err)
			}
			fails(failure{pod: live, message: "no room"})
		}
		time.Sleep(takes / 2)
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: bound.Namespace, Name: bound.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "node"}}
		if err := s.client.CoreV1().Pods(bound.Namespace).Bind(s.t.Context(), binding, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
		live, err := s.client.CoreV1().Pods(changed.Namespace).Get(s.t.Context(), changed.Name, metav1.GetOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		live.Labels = map[string]string{"changed": "yes"}
		if _, err := s.client.CoreV1().Pods(changed.Namespace).Update(s.t.Context(), live, metav1.UpdateOptions{}); err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(3 * takes)
		for _, c := range now(bound).Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				s.t.Errorf("the pod has a node, and the condition %+v", c)
			}
		}
		if c := now(changed).Conditions; len(c) != 1 || c[0].Message != "no room" {
			s.t.Errorf("the pod that was changed meanwhile has %+v, want why it does not fit", c)
		}
	})
}

// theirs is upstream's own way.
type theirs struct {
	fwk.APICacher
	writes int
}

// PatchPodStatus implements fwk.APICacher.
func (c *theirs) PatchPodStatus(*corev1.Pod, []*corev1.PodCondition, *fwk.NominatingInfo) (<-chan error, error) {
	c.writes++
	return nil, nil
}

func TestUpstreamsOwnWayIsLeftToIt(t *testing.T) {
	c := &theirs{}
	p := pod("others", "a")
	play(t, c, []*corev1.Pod{p}, func(s *server, fails func(failure), _ func(*corev1.Pod) *corev1.PodStatus) {
		fails(failure{pod: p, message: "no room"})
		synctest.Wait()
		if c.writes != 1 || s.writes.Load() != 0 {
			t.Errorf("upstream writes %d times and this %d times, want it to be upstream's", c.writes, s.writes.Load())
		}
	})
}
