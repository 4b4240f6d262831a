// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package numaaware

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/klog/v2"
	nodeinfo "volcano.sh/apis/pkg/apis/nodeinfo/v1alpha1"

	"github.com/caldera-scheduler/caldera/pkg/model/informer"
)

// layouts are what is known of the nodes.
type layouts struct {
	// changed is called after each change.
	changed func()

	// mu guards byNode, changes and complete; never held while calling out.
	mu sync.RWMutex
	// byNode maps the name of a node to what its Numatopology tells.
	byNode map[string]*layout
	// changes counts them.
	changes int64
	// complete: what was there at the start has been read.
	complete bool
}

func newLayouts(changed func()) *layouts {
	return &layouts{changed: changed, byNode: map[string]*layout{}}
}

// of is what is known of a node; nil when nothing is.
func (l *layouts) of(name string) *layout {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.byNode[name]
}

// version numbers what is known, and tells whether it has been read at all.
func (l *layouts) version() (number int64, complete bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.changes, l.complete
}

// follow reads Numatopologies until the context ends. Where the API server has none yet, nothing is known of any node.
func (l *layouts) follow(ctx context.Context, clients informer.Clients) {
	logger := klog.FromContext(ctx).WithValues("plugin", Name)
	put := func(o *nodeinfo.Numatopology) {
		if before := l.of(o.Name); before != nil && equality.Semantic.DeepEqual(before.spec, &o.Spec) {
			return
		}
		read := read(o)
		if read.problem != "" {
			logger.Error(nil, "Numatopology is not used", "node", o.Name, "problem", read.problem)
		}
		l.change(func() { l.byNode[o.Name] = read })
	}
	remove := func(o *nodeinfo.Numatopology) { l.change(func() { delete(l.byNode, o.Name) }) }
	if err := informer.Numatopologies(ctx, clients, put, remove); err != nil {
		if ctx.Err() == nil {
			logger.Error(err, "Cannot read the NUMA topologies of nodes; no guaranteed pod will be scheduled")
		}
		return
	}
	l.change(func() { l.complete = true })
}

// change changes what is known.
func (l *layouts) change(how func()) {
	l.mu.Lock()
	how()
	l.changes++
	l.mu.Unlock()
	l.changed()
}
