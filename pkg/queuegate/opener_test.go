// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package queuegate_test

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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queuegate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
)

var pods = schema.GroupResource{Resource: "pods"}

// bad is what goes wrong with patches one after the other: before they reach the API server, or with its answers.
type bad struct {
	*memory.Server
	mu             sync.Mutex
	before, answer []error
}

func next(errs *[]error) (err error) {
	if len(*errs) > 0 {
		err, *errs = (*errs)[0], (*errs)[1:]
	}
	return err
}

// RoundTrip implements http.RoundTripper.
func (b *bad) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch {
		return b.Server.RoundTrip(r)
	}
	b.mu.Lock()
	before, answer := next(&b.before), next(&b.answer)
	b.mu.Unlock()
	if before != nil {
		return memory.Refuse(r, before)
	}
	response, err := b.Server.RoundTrip(r)
	if answer != nil && err == nil {
		return nil, errors.Join(answer, response.Body.Close())
	}
	return response, err
}

// gated is a pod before the gates of that name.
func gated(gates ...string) *corev1.Pod {
	p := builders.Pod("team", "a").Obj()
	for _, name := range gates {
		p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: name})
	}
	return p
}

func TestGatesAreTakenOffWhateverHappens(t *testing.T) {
	unavailable, lost := apierrors.NewServiceUnavailable("later"), errors.New("connection reset")
	other := gated(model.QueueGate)
	other.UID = "another"
	for name, tc := range map[string]struct {
		// now is the pod when the request is made; nil: it is gone.
		now            *corev1.Pod
		before, answer []error
		gates          []string
		kept           string
	}{
		"at once":                        {now: gated(model.QueueGate)},
		"of the gates only that one":     {now: gated("hold", model.QueueGate), gates: []string{"hold"}},
		"when the API server is back":    {now: gated(model.QueueGate), before: slices.Repeat([]error{unavailable}, 8)},
		"when there are fewer requests":  {now: gated(model.QueueGate), before: []error{apierrors.NewTooManyRequests("slow down", 1)}},
		"though the answer was lost":     {now: gated(model.QueueGate), answer: []error{lost}},
		"though another wrote":           {now: gated(model.QueueGate), before: []error{apierrors.NewConflict(pods, "a", nil)}},
		"of none that is gone":           {},
		"of none that was created again": {now: other, gates: []string{model.QueueGate}},
		"not while the API server fails for minutes": {
			now: gated(model.QueueGate), before: slices.Repeat([]error{unavailable}, 100), gates: []string{model.QueueGate}, kept: "later",
		},
		"of none where that is not allowed": {
			now: gated(model.QueueGate), before: []error{apierrors.NewForbidden(pods, "a", errors.New("no"))}, gates: []string{model.QueueGate}, kept: "forbidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, err := memory.New(clock.RealClock{})
				if err != nil {
					t.Fatal(err)
				}
				if tc.now != nil {
					if err := api.Add(tc.now); err != nil {
						t.Fatal(err)
					}
				}
				client, err := kubernetes.NewForConfig(memory.Config(&bad{Server: api.Server(), before: tc.before, answer: tc.answer}))
				if err != nil {
					t.Fatal(err)
				}
				var kept []string
				ctx, stop := context.WithCancel(t.Context())
				o := queuegate.NewOpener(ctx, client, clock.RealClock{}, func(_ *model.Task, err error) { kept = append(kept, err.Error()) })
				ended := make(chan struct{})
				go func() {
					o.Run(ctx)
					close(ended)
				}()
				o.Open([]*model.Task{model.NewTask(gated(model.QueueGate))})
				time.Sleep(2 * time.Minute)
				if !o.Idle() {
					t.Error("something is left to do")
				}
				stop()
				<-ended
				if got := strings.Join(kept, "; "); tc.kept == "" && got != "" || !strings.Contains(got, tc.kept) {
					t.Errorf("was told that a gate is kept because %q, want %q", got, tc.kept)
				}
				if tc.now == nil {
					return
				}
				now, err := client.CoreV1().Pods("team").Get(t.Context(), "a", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var gates []string
				for _, g := range now.Spec.SchedulingGates {
					gates = append(gates, g.Name)
				}
				if marked := now.Annotations[model.QueueAdmittedAnnotation] == "true"; !slices.Equal(gates, tc.gates) ||
					marked == slices.Contains(tc.gates, model.QueueGate) {
					t.Errorf("the pod has gates %v and is marked: %t, want gates %v and a mark if that of the queue is gone", gates, marked, tc.gates)
				}
			})
		})
	}
}

// TestAGateThatIsPutBack: something of the cluster's gives the pod its gate again.
func TestAGateThatIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, err := memory.New(clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		if err := api.Add(gated(model.QueueGate)); err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(memory.Config(stubborn{api.Server()}))
		if err != nil {
			t.Fatal(err)
		}
		kept := make(chan error, 1)
		o := queuegate.NewOpener(t.Context(), client, clock.RealClock{}, func(_ *model.Task, err error) { kept <- err })
		go o.Run(t.Context())
		o.Open([]*model.Task{model.NewTask(gated(model.QueueGate))})
		if err := <-kept; !strings.Contains(err.Error(), "the gate is there again") {
			t.Errorf("was told %v", err)
		}
	})
}

// stubborn is an API server that takes requests and changes nothing.
type stubborn struct{ *memory.Server }

// RoundTrip implements http.RoundTripper.
func (s stubborn) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch {
		read := r.Clone(r.Context())
		read.Method, read.Body = http.MethodGet, nil
		return s.Server.RoundTrip(read)
	}
	return s.Server.RoundTrip(r)
}

// TestWhereItIsForbiddenFewAskAgain: nobody asks for the others of a namespace in which it was forbidden, and all others are served.
func TestWhereItIsForbiddenFewAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, err := memory.New(clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		var tasks []*model.Task
		for i := range 1000 {
			p := gated(model.QueueGate)
			if p.Name = fmt.Sprintf("p%d", i); i == 999 {
				p.Namespace = "other"
			}
			p.UID = types.UID(p.Name)
			if err := api.Add(p); err != nil {
				t.Fatal(err)
			}
			tasks = append(tasks, model.NewTask(p))
		}
		asked := &strict{Server: api.Server(), namespace: "team"}
		client, err := kubernetes.NewForConfig(memory.Config(asked))
		if err != nil {
			t.Fatal(err)
		}
		var kept atomic.Int32
		o := queuegate.NewOpener(t.Context(), client, clock.RealClock{}, func(*model.Task, error) { kept.Add(1) })
		go o.Run(t.Context())
		o.Open(tasks)
		synctest.Wait()
		// Five are asked for at a time.
		if n := asked.refused.Load(); n > 5 || kept.Load() != 999 {
			t.Errorf("%d requests were refused and %d gates kept, want at most 5 and 999", n, kept.Load())
		}
		p, err := client.CoreV1().Pods("other").Get(t.Context(), "p999", metav1.GetOptions{})
		if err != nil || len(p.Spec.SchedulingGates) > 0 {
			t.Errorf("the pod of another namespace has gates %v: %v", p.Spec.SchedulingGates, err)
		}
	})
}

// strict is an API server that lets nobody change pods of a namespace.
type strict struct {
	*memory.Server
	namespace string
	refused   atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (s *strict) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/namespaces/"+s.namespace+"/") {
		s.refused.Add(1)
		return memory.Refuse(r, apierrors.NewForbidden(pods, "any", errors.New(`User "scheduler" cannot patch resource "pods" in API group ""`)))
	}
	return s.Server.RoundTrip(r)
}

// hanging is an API server that answers no patch of a namespace before a minute is over.
type hanging struct{ *memory.Server }

// RoundTrip implements http.RoundTripper.
func (h hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/namespaces/hangs/") {
		time.Sleep(time.Minute)
	}
	return h.Server.RoundTrip(r)
}

// TestGatesOfOneNamespaceThatAreNotTakenOffKeepNoOthers: twenty pods of a namespace come first, and five requests are made at a time.
func TestGatesOfOneNamespaceThatAreNotTakenOffKeepNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, err := memory.New(clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		var tasks []*model.Task
		for i := range 21 {
			p := gated(model.QueueGate)
			p.Namespace, p.Name, p.UID = "hangs", fmt.Sprintf("a-%d", i), types.UID(fmt.Sprintf("a-%d", i))
			if i == 20 {
				p.Namespace = "others"
			}
			if err := api.Add(p); err != nil {
				t.Fatal(err)
			}
			tasks = append(tasks, model.NewTask(p))
		}
		client, err := kubernetes.NewForConfig(memory.Config(hanging{api.Server()}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		o := queuegate.NewOpener(ctx, client, clock.RealClock{}, func(task *model.Task, err error) { t.Errorf("the gate of %s is kept: %v", task.Pod.Name, err) })
		ended := make(chan struct{})
		go func() {
			o.Run(ctx)
			close(ended)
		}()
		open := func(p *model.Task) bool {
			now, err := client.CoreV1().Pods(p.Pod.Namespace).Get(t.Context(), p.Pod.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return len(now.Spec.SchedulingGates) == 0
		}
		o.Open(tasks)
		time.Sleep(2 * time.Second)
		if !open(tasks[20]) {
			t.Error("a pod of another namespace has its gate after two seconds")
		}
		time.Sleep(time.Hour)
		for i, p := range tasks {
			if !open(p) {
				t.Errorf("pod %d has its gate after an hour", i)
			}
		}
		stop()
		<-ended
	})
}
