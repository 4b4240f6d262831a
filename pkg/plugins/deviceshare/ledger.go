// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceshare

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/caldera-scheduler/caldera/pkg/plugins/deviceshare/card"
)

// reservation is what a pod has got on a node.
type reservation struct {
	node       string
	assignment card.Assignment
	// told: the pod's annotations tell of it, or may. lock is the value of the node's lock that the pod has; empty for none. Only
	// the pod's own binding reads and writes both.
	told bool
	lock string
}

// ledger has the reservations of pods until the pods are gone: when their annotations arrive, those count.
type ledger struct {
	// mu guards pods; never held while calling out.
	mu   sync.RWMutex
	pods map[types.UID]*reservation
}

func newLedger() *ledger { return &ledger{pods: map[types.UID]*reservation{}} }

// of is what a pod has got on a node; false when nothing was reserved for it there.
func (l *ledger) of(pod types.UID, node string) (card.Assignment, bool) {
	r := l.get(pod)
	if r == nil || r.node != node {
		return nil, false
	}
	return r.assignment, true
}

// get returns a pod's reservation; nil when it has none.
func (l *ledger) get(pod types.UID) *reservation {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.pods[pod]
}

func (l *ledger) put(pod types.UID, r *reservation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods[pod] = r
}

func (l *ledger) remove(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pods, pod)
}

// follow forgets the reservations of pods that are gone, and tells when a node says something else of its cards.
func (pl *DeviceShare) follow(changed func()) error {
	core := pl.handle.SharedInformerFactory().Core().V1()
	_, err := core.Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if pod, ok := o.(*corev1.Pod); ok {
			pl.ledger.remove(pod.UID)
		}
	}})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	_, err = core.Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		was, is := before.(*corev1.Node).Annotations, after.(*corev1.Node).Annotations
		if slices.ContainsFunc(card.NodeAnnotations(), func(key string) bool { return was[key] != is[key] }) {
			changed()
		}
	}})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	return nil
}
