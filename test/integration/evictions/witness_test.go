// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// witness sees every pod that ends although its scene did not end it.
type witness struct {
	mu sync.Mutex // guards the rest
	// ended are the pods that ended, or begin to; forgiven those that the scene itself deletes.
	ended, forgiven map[types.UID]bool
	evicted         map[string]int
	// said is what conditions of the type DisruptionTarget each evicted pod had, by its name.
	said map[string][]corev1.PodCondition
	// wanting is how many versions were seen of each job's pods by which an autoscaler brings nodes.
	wanting map[string]int
	// began and gone are told of each pod that begins to end, and of each that is gone.
	began, gone func(*corev1.Pod)
}

func newWitness() *witness {
	w := &witness{forgiven: map[types.UID]bool{}}
	w.reset()
	return w
}

// reset begins to count anew. What is forgiven stays so: the end of a pod of the scene before may be seen late.
func (w *witness) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended, w.evicted = map[types.UID]bool{}, map[string]int{}
	w.said, w.wanting, w.began, w.gone = map[string][]corev1.PodCondition{}, map[string]int{}, nil, nil
}

// see takes in one change.
func (w *witness) see(before, after *corev1.Pod) {
	p := after
	if after == nil {
		p = before
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(p.Status.Conditions, isDisruption); i >= 0 {
		w.said[p.Name] = append(w.said[p.Name], p.Status.Conditions[i])
	}
	if wantsNodes(p) {
		w.wanting[p.Labels[env.GroupLabel]]++
	}
	if after == nil && w.gone != nil {
		w.gone(p)
	}
	if p.DeletionTimestamp == nil && after != nil || w.ended[p.UID] || w.forgiven[p.UID] {
		return
	}
	w.ended[p.UID] = true
	if disrupted(p) {
		w.evicted[p.Labels[env.GroupLabel]]++
	} else {
		w.evicted[p.Labels[env.GroupLabel]+" (nobody evicted it)"]++
	}
	if w.began != nil {
		w.began(p)
	}
}

// wantsNodes reports whether an autoscaler would bring a node for a pod: the scheduler has found none, and makes no room either.
func wantsNodes(p *corev1.Pod) bool {
	return p.Status.NominatedNodeName == "" && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// wants is how many versions of a job's pods an autoscaler would have brought nodes for.
func (w *witness) wants(job string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wanting[job]
}

func isDisruption(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget }

// disrupted reports whether a pod has been evicted, of which the API server takes note.
func disrupted(p *corev1.Pod) bool { return slices.ContainsFunc(p.Status.Conditions, isDisruption) }

// counts returns how many pods of each job have been evicted.
func (w *witness) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.evicted)
}

// conditions returns what conditions of the type DisruptionTarget a pod had.
func (w *witness) conditions(pod string) []corev1.PodCondition {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.said[pod])
}

// forgive leaves pods out of account that the scene deletes.
func (w *witness) forgive(pods ...*corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range pods {
		w.forgiven[p.UID] = true
	}
}

// recreate has a controller create a pod for each that is evicted: as soon as that ends and under a new name, as a
// ReplicaSet does, or when it is gone and under the same, as a StatefulSet.
func (s *scene) recreate(sameName bool) {
	ctx, created := s.t.Context(), 0
	var running sync.WaitGroup
	s.t.Cleanup(func() {
		s.witness.call(nil, nil)
		running.Wait()
	})
	create := func(p *corev1.Pod) {
		fresh := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, Annotations: p.Annotations, Finalizers: p.Finalizers,
		}, Spec: *p.Spec.DeepCopy()}
		fresh.Spec.NodeName = ""
		if !sameName {
			created++
			fresh.Name = fmt.Sprintf("%s-again-%d", p.Labels[env.GroupLabel], created)
		}
		running.Go(func() {
			_, err := s.Kube.CoreV1().Pods(fresh.Namespace).Create(ctx, fresh, metav1.CreateOptions{})
			if err != nil && ctx.Err() == nil && !apierrors.IsAlreadyExists(err) {
				s.t.Errorf("creating a pod again: %v", err)
			}
		})
	}
	if sameName {
		s.witness.call(nil, create)
	} else {
		s.witness.call(create, nil)
	}
}

// call has functions called with each pod that begins to end, and each that is gone.
func (w *witness) call(began, gone func(*corev1.Pod)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began, w.gone = began, gone
}
