// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/test/soak/monitor"
)

const (
	// requests is how many requests are made at a time.
	requests = 16
	// arrivals is how many jobs may arrive in a queue with one tick.
	arrivals = 2
)

// world is all that lives on the cluster: what users and controllers do.
type world struct {
	options options
	pace    pace
	monitor *monitor.Monitor
	kube    kubernetes.Interface
	groups  volcanoclient.Interface
	begun   time.Time
	queues  []*volcano.Queue

	calls   chan func(context.Context)
	pending sync.WaitGroup
	failed  atomic.Int64

	mu     sync.Mutex // guards the rest
	random *rand.Rand
	jobs   map[string]*life
	number int
	last   time.Time
	// on are the pods that are bound to each node.
	on      map[string]map[types.UID]*corev1.Pod
	trouble trouble
	done    tally
}

// tally counts what happened to jobs.
type tally struct{ arrived, completed, cancelled, recreated, nodesLost, queuesChanged int }

// life is a job on the cluster.
type life struct {
	job
	// pods are those that were created and are not gone, by name. A nil one has not been seen yet.
	pods map[string]*corev1.Pod
	// next is the number of the next pod; due are the times when pods are to be created.
	next int
	due  []time.Time
	ran  time.Duration
}

// newWorld creates the queues and what jobs need besides.
func newWorld(ctx context.Context, s *stage, o options, m *monitor.Monitor) (*world, error) {
	w := &world{
		options: o, pace: paceOf(o.duration), monitor: m, kube: s.kube, groups: s.groups, begun: time.Now(),
		queues: queueSpecs(o.queues, o.nodes), calls: make(chan func(context.Context), 1<<16),
		random: rand.New(rand.NewPCG(o.seed, 0)), jobs: map[string]*life{}, on: map[string]map[types.UID]*corev1.Pod{},
	}
	for _, q := range w.queues {
		if _, err := s.groups.SchedulingV1beta1().Queues().Create(ctx, q, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("creating queue %s: %w", q.Name, err)
		}
	}
	for _, c := range priorityClasses() {
		if err := localcluster.CreatePriorityClass(ctx, s.kube, c); err != nil {
			return nil, err
		}
	}
	for range requests {
		w.pending.Go(func() {
			for call := range w.calls {
				call(ctx)
			}
		})
	}
	return w, nil
}

// finish waits until all requests have been made.
func (w *world) finish() {
	close(w.calls)
	w.pending.Wait()
}

// call makes a request in the background. What has been there or is gone already is as good.
func (w *world) call(request func(context.Context) error) {
	w.calls <- func(ctx context.Context) {
		err := request(ctx)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
			w.failed.Add(1)
		}
	}
}

// step does what is to be done now.
func (w *world) step(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	passed := tick
	if !w.last.IsZero() {
		passed = now.Sub(w.last)
	}
	w.last = now
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		w.look(w.jobs[name], now, passed)
	}
	w.arrive(now)
	w.disturb(now)
}

// arrive has jobs arrive where less is asked for than the wave says.
func (w *world) arrive(now time.Time) {
	asked := map[string]int{}
	for _, l := range w.jobs {
		asked[l.queue] += l.asks()
	}
	cores := w.options.nodes * nodeCores
	for i, q := range w.queues {
		want := w.pace.wanted(i, len(w.queues), now.Sub(w.begun)) * float64(cores) / float64(len(w.queues))
		for range arrivals {
			if float64(asked[q.Name]) >= want {
				break
			}
			w.number++
			j := w.pace.draw(w.random, fmt.Sprintf("%s-%05d", q.Name, w.number), q.Name, cores)
			asked[q.Name] += j.asks()
			w.begin(j, now)
		}
	}
}

// begin creates a job. Its pods follow at once.
func (w *world) begin(j job, now time.Time) {
	l := &life{job: j, pods: map[string]*corev1.Pod{}}
	w.jobs[j.name] = l
	w.done.arrived++
	for range j.size {
		l.due = append(l.due, now)
	}
	group := j.group()
	w.call(func(ctx context.Context) error {
		_, err := w.groups.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{})
		return err
	})
	if j.budget {
		budget := j.disruptionBudget()
		w.call(func(ctx context.Context) error {
			_, err := w.kube.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, budget, metav1.CreateOptions{})
			return err
		})
	}
}

// look is a job's controller: it sees to it that as many pods exist as are needed, and ends the job when it is done.
func (w *world) look(l *life, now time.Time, passed time.Duration) {
	alive, running, succeeded := 0, 0, 0
	for _, p := range l.pods {
		switch {
		case p == nil:
			alive++
		case p.Status.Phase == corev1.PodSucceeded:
			succeeded++
		case p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed:
		default:
			alive++
			if p.Status.Phase == corev1.PodRunning {
				running++
			}
		}
	}
	if running+succeeded >= l.least && running > 0 {
		l.ran += passed
	}
	if succeeded >= l.size || !l.finite && l.ran >= l.work {
		w.done.completed++
		w.end(l)
		return
	}
	for missing := l.size - succeeded - alive - len(l.due); missing > 0; missing-- {
		w.done.recreated++
		l.due = append(l.due, now.Add(between(w.random, w.pace.period/720, w.pace.period/72)))
	}
	l.due = slices.DeleteFunc(l.due, func(at time.Time) bool {
		if at.After(now) {
			return false
		}
		w.create(l)
		return true
	})
}

// create creates the next pod of a job.
func (w *world) create(l *life) {
	pod := l.pod(l.next, between(w.random, 0, w.pace.period/90))
	l.next++
	l.pods[pod.Name] = nil
	w.call(func(ctx context.Context) error {
		if !w.lives(l.name) {
			return nil
		}
		_, err := w.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(l.pods, pod.Name)
			return err
		}
		if !w.lives(l.name) { // It ended in the meantime.
			return w.kube.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
		}
		return nil
	})
}

func (w *world) lives(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jobs[name] != nil
}

// end deletes a job with all that belongs to it; the PodGroup last, so that its pods are in its queue as long as they hold
// room.
func (w *world) end(l *life) {
	delete(w.jobs, l.name)
	w.monitor.Ended(namespace, l.name, w.last)
	w.call(func(ctx context.Context) error {
		if l.budget {
			if err := w.kube.PolicyV1().PodDisruptionBudgets(namespace).Delete(ctx, l.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		err := w.kube.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: jobLabel + "=" + l.name})
		if err != nil {
			return err
		}
		return w.groups.SchedulingV1beta1().PodGroups(namespace).Delete(ctx, l.name, metav1.DeleteOptions{})
	})
}

// saw takes in a pod as it is, or that it is gone.
func (w *world) saw(p *corev1.Pod, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if node := p.Spec.NodeName; node != "" {
		if w.on[node] == nil {
			w.on[node] = map[types.UID]*corev1.Pod{}
		}
		if gone {
			delete(w.on[node], p.UID)
		} else {
			w.on[node][p.UID] = p
		}
	}
	l := w.jobs[p.Labels[jobLabel]]
	if l == nil {
		return
	}
	if gone {
		delete(l.pods, p.Name)
	} else {
		l.pods[p.Name] = p
	}
}
