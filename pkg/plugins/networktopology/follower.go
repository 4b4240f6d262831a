// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package networktopology

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	topology "volcano.sh/apis/pkg/apis/topology/v1alpha1"

	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	"github.com/caldera-scheduler/caldera/pkg/topology/hypernode"
)

// follower keeps the tree of HyperNodes up to date. Building it can take long, with patterns and thousands of nodes: it is done
// beside scheduling, which goes on with the tree from before.
type follower struct {
	// changed is called after each new tree, complain with what is wrong with a HyperNode.
	changed  func()
	complain func(object runtime.Object, problem string)

	// tree is nil until all HyperNodes have been read.
	tree atomic.Pointer[hypernode.Tree]
	// dirty holds an element when something has changed since the last tree was begun.
	dirty chan struct{}

	// mu guards what follows.
	mu         sync.Mutex
	hyperNodes map[string]*topology.HyperNode
	nodes      map[string]hypernode.Node
	// changes counts what has changed, built how much of that the last tree knows; -1 before the first.
	changes, built int
	// told are the problems of the last tree.
	told map[hypernode.Problem]bool
}

func newFollower(changed func(), complain func(runtime.Object, string)) *follower {
	return &follower{
		changed: changed, complain: complain, dirty: make(chan struct{}, 1),
		built: -1, hyperNodes: map[string]*topology.HyperNode{}, nodes: map[string]hypernode.Node{}, told: map[hypernode.Problem]bool{},
	}
}

// follow reads HyperNodes and builds trees until the context ends.
func (f *follower) follow(ctx context.Context, clients informer.Clients) {
	put := func(o *topology.HyperNode) {
		if !f.knows(o) {
			f.change(func() { f.hyperNodes[o.Name] = o })
		}
	}
	remove := func(o *topology.HyperNode) { f.change(func() { delete(f.hyperNodes, o.Name) }) }
	if err := informer.HyperNodes(ctx, clients, put, remove); err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot watch HyperNodes; no job with a network topology will be scheduled")
		}
		return
	}
	for {
		f.build()
		select {
		case <-ctx.Done():
			return
		case <-f.dirty:
		}
	}
}

// knows reports whether a HyperNode is as it was: others write its status.
func (f *follower) knows(o *topology.HyperNode) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.hyperNodes[o.Name]
	return before != nil && equality.Semantic.DeepEqual(&before.Spec, &o.Spec)
}

// change records a change.
func (f *follower) change(fn func()) {
	f.mu.Lock()
	fn()
	f.changes++
	f.mu.Unlock()
	select {
	case f.dirty <- struct{}{}:
	default:
	}
}

// behind reports whether there is something that the last tree does not know.
func (f *follower) behind() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.built != f.changes
}

// putNode records a node, if something about it is new.
func (f *follower) putNode(n *corev1.Node) {
	f.mu.Lock()
	before, known := f.nodes[n.Name]
	f.mu.Unlock()
	if !known || !maps.Equal(before.Labels, n.Labels) {
		f.change(func() { f.nodes[n.Name] = hypernode.Node{Name: n.Name, Labels: n.Labels} })
	}
}

func (f *follower) removeNode(n *corev1.Node) { f.change(func() { delete(f.nodes, n.Name) }) }

// build makes a tree of what is there.
func (f *follower) build() {
	f.mu.Lock()
	objects := maps.Clone(f.hyperNodes)
	nodes := slices.Collect(maps.Values(f.nodes))
	changes := f.changes
	f.mu.Unlock()

	var specs []hypernode.Spec
	var problems []hypernode.Problem
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		spec, wrong := specOf(objects[name])
		specs, problems = append(specs, spec), append(problems, wrong...)
	}
	tree, wrong := hypernode.Build(specs, nodes)
	f.tree.Store(tree)
	f.changed()
	f.mu.Lock()
	f.built = changes
	f.mu.Unlock()

	told := map[hypernode.Problem]bool{}
	for _, p := range append(problems, wrong...) {
		if !f.told[p] && !told[p] {
			f.complain(objects[p.HyperNode], p.Message)
		}
		told[p] = true
	}
	f.told = told
}

// specOf reads a HyperNode. Members that cannot be read are left out and told.
func specOf(o *topology.HyperNode) (spec hypernode.Spec, problems []hypernode.Problem) {
	spec = hypernode.Spec{Name: o.Name, TierName: o.Spec.TierName, Tier: o.Spec.Tier}
	for i := range o.Spec.Members {
		m, err := memberOf(&o.Spec.Members[i])
		if err != nil {
			problems = append(problems, hypernode.Problem{
				HyperNode: o.Name, Message: fmt.Sprintf("spec.members[%d]%v; the member does not count until then", i, err),
			})
			continue
		}
		spec.Members = append(spec.Members, m)
	}
	return spec, problems
}

func memberOf(m *topology.MemberSpec) (hypernode.Member, error) {
	member := hypernode.Member{HyperNode: m.Type == topology.MemberTypeHyperNode}
	var err error
	switch s := m.Selector; {
	case s.ExactMatch != nil:
		member.Name = s.ExactMatch.Name
	case s.RegexMatch != nil:
		if member.Pattern, err = regexp.Compile(s.RegexMatch.Pattern); err != nil {
			return member, fmt.Errorf(".selector.regexMatch.pattern is %q: %w: correct it", s.RegexMatch.Pattern, err)
		}
	case s.LabelMatch != nil && member.HyperNode:
		return member, fmt.Errorf(".selector.labelMatch selects nodes only, and its type is %s: use exactMatch or regexMatch", m.Type)
	case s.LabelMatch != nil:
		if member.Labels, err = metav1.LabelSelectorAsSelector(s.LabelMatch); err != nil {
			return member, fmt.Errorf(".selector.labelMatch cannot be read: %w: correct it", err)
		}
	default:
		return member, fmt.Errorf(".selector is empty: set exactMatch, regexMatch or labelMatch")
	}
	return member, nil
}
