// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/clock"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory/fakes"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// stage is an API server, a ledger and an executor. It lives in a synctest bubble, where time passes when all wait.
type stage struct {
	// deposed: the lease has run out.
	deposed  atomic.Bool
	t        *testing.T
	api      *memory.API
	kube     kubernetes.Interface
	ledger   *eviction.Ledger
	executor *eviction.Executor
	end      context.CancelFunc

	// before is called in place of the API server's first step; an error is its answer.
	before func(name string) error
	// mu guards what follows.
	mu      sync.Mutex
	asked   []string
	refused []string
	// stays are the victims that were told to stay, in order.
	stays []string
	// then is done at the first refusal.
	then func()
}

// play runs a story with a stage on which an executor runs.
func play(t *testing.T, concurrency int, story func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { onStage(t, clock.RealClock{}, concurrency, story) })
}

func onStage(t *testing.T, now clock.WithTickerAndDelayedExecution, concurrency int, story func(*stage)) {
	t.Helper()
	api, err := memory.New(now)
	check(t, err)
	s := &stage{t: t, api: api, kube: fakes.Kube(api), ledger: eviction.NewLedger(100, time.Minute)}
	state := model.NewState()
	for _, name := range []string{"a", "b", "c"} {
		queue := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("queue " + name)}}
		state.UpsertQueue(&model.Queue{Name: name, UID: queue.UID, Object: queue})
	}
	for name, queue := range map[string]string{"x": "b", "a": "a", "c": "c"} {
		group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("group " + name)}}
		state.UpsertGroup(job(name), &model.Group{UID: group.UID, Queue: queue, MinMember: 1, Object: group})
	}
	writer, err := status.NewAt(now, fakes.Groups(api).Volcano, s.kube, state)
	check(t, err)
	writer.StartEvents()
	defer writer.Close()
	client, err := kubernetes.NewForConfig(memory.Config(wire{api.Server(), s}))
	check(t, err)
	s.executor = eviction.NewExecutor(eviction.Config{
		Ledger: s.ledger, Client: client, Writer: writer, Clock: now, Concurrency: concurrency, VictimTimeout: time.Minute,
		Refused: s.refusal, Stays: s.stay, Leads: func() bool { return !s.deposed.Load() },
	})
	ctx, end := context.WithCancel(t.Context())
	s.end = end
	var running sync.WaitGroup
	running.Go(func() { s.executor.Run(ctx) })
	defer running.Wait()
	defer end()
	story(s)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *stage) refusal(d *eviction.Decision, v *eviction.Victim, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var states []string
	for _, v := range d.Victims {
		states = append(states, fmt.Sprintf("%s=%s", v.UID, v.State))
	}
	s.refused = append(s.refused, fmt.Sprintf("%d: %s: %s: %s", d.ID, v.UID, strings.Join(states, " "), apierrors.ReasonForError(err)))
	if s.then != nil {
		s.then()
		s.then = nil
	}
}

func (s *stage) stay(list []*eviction.Victim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range list {
		s.stays = append(s.stays, string(v.UID))
	}
}

// wire is how requests for evictions come to the API server.
type wire struct {
	*memory.Server
	s *stage
}

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	info, err := w.Info(r)
	if err != nil || info.Subresource != "eviction" {
		return w.Server.RoundTrip(r)
	}
	w.s.mu.Lock()
	w.s.asked = append(w.s.asked, info.Name)
	before := w.s.before
	w.s.mu.Unlock()
	if before == nil {
		return w.Server.RoundTrip(r)
	}
	err = before(info.Name)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return w.Server.RoundTrip(r)
	case errors.As(err, &status):
		return memory.Refuse(r, err)
	}
	return nil, err
}

// add creates the pods of victims, which run.
func (s *stage) add(list ...*eviction.Victim) {
	s.t.Helper()
	for _, v := range list {
		p := v.Pod.DeepCopy()
		p.UID, p.Spec.NodeName, p.Status.Phase = v.UID, "n1", corev1.PodRunning
		p.Labels = map[string]string{"job": v.Job.Name}
		v.Pod = p
		check(s.t, s.api.Add(p))
	}
}

// budget covers the pods of a job by a budget that allows so many disruptions.
func (s *stage) budget(job string, allowed int32) {
	s.t.Helper()
	check(s.t, s.api.Add(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: job},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": job}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}))
}

// execute enters a decision for job x in queue b and has it performed.
func (s *stage) execute(list ...*eviction.Victim) uint64 {
	d := s.ledger.Begin(time.Now(), eviction.Decision{Action: eviction.Reclaim, Beneficiary: job("x"), Queue: "b", Victims: list})
	s.executor.Execute(d)
	return d.ID
}

// rest waits until the executor has nothing left to do and all that it wrote is written. Time passes by that.
func (s *stage) rest() {
	s.t.Helper()
	for range 100 {
		synctest.Wait()
		if s.executor.Idle() {
			return
		}
		time.Sleep(time.Second)
	}
	s.t.Fatal("the executor does not come to rest")
}

// states are the states of the victims of a decision.
func (s *stage) states(id uint64) string {
	for _, d := range s.ledger.Decisions() {
		if d.ID == id {
			var parts []string
			for _, v := range d.Victims {
				parts = append(parts, fmt.Sprintf("%s=%s", v.UID, v.State))
			}
			return fmt.Sprintf("%s: %s", d.Outcome, strings.Join(parts, " "))
		}
	}
	return "not remembered"
}

// want fails when the victims of a decision are not in these states.
func (s *stage) want(id uint64, want string) {
	s.t.Helper()
	if got := s.states(id); got != want {
		s.t.Errorf("decision %d is %s, want %s", id, got, want)
	}
}

// wantRefused fails when other refusals were reported.
func (s *stage) wantRefused(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.refused); diff != "" {
		s.t.Errorf("refusals (-want,+got)\n%s", diff)
	}
}

// wantStays fails when others were told to stay, in another order.
func (s *stage) wantStays(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.stays); diff != "" {
		s.t.Errorf("victims that stay (-want,+got)\n%s", diff)
	}
}

// wantAsked fails when the API server was asked for other evictions, in another order.
func (s *stage) wantAsked(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.asked); diff != "" {
		s.t.Errorf("asked for (-want,+got)\n%s", diff)
	}
}

// events are the events that were written.
func (s *stage) events() []string {
	s.t.Helper()
	synctest.Wait()
	list, err := s.kube.CoreV1().Events("").List(s.t.Context(), metav1.ListOptions{})
	check(s.t, err)
	var said []string
	for _, e := range list.Items {
		said = append(said, fmt.Sprintf("%s %s on %s %s: %s", e.Type, e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message))
	}
	slices.Sort(said)
	return said
}

// condition is the condition DisruptionTarget of a pod.
func (s *stage) condition(name string) string {
	s.t.Helper()
	p, err := s.kube.CoreV1().Pods("team").Get(s.t.Context(), name, metav1.GetOptions{})
	check(s.t, err)
	_, c := podutil.GetPodCondition(&p.Status, corev1.DisruptionTarget)
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}
