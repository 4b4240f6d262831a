// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package networktopology

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	"github.com/caldera-scheduler/caldera/pkg/topology/hypernode"
)

// Build returns the plugin with a tree that does not change.
func Build(args *config.NetworkTopologyArgs, tree *hypernode.Tree) *NetworkTopology {
	f := newFollower(func() {}, func(runtime.Object, string) {})
	f.tree.Store(tree)
	return newPlugin(args, f)
}

// Follower lets tests follow HyperNodes without a scheduler.
type Follower struct{ *follower }

// NewFollower returns a follower that calls changed after each new tree.
func NewFollower(changed func(), complain func(runtime.Object, string)) Follower {
	return Follower{newFollower(changed, complain)}
}

// Follow reads HyperNodes until the context ends.
func (f Follower) Follow(ctx context.Context, clients informer.Clients) { f.follow(ctx, clients) }

// PutNode and RemoveNode are what the informer of nodes calls.
func (f Follower) PutNode(n *corev1.Node)    { f.putNode(n) }
func (f Follower) RemoveNode(n *corev1.Node) { f.removeNode(n) }

// Tree is the last tree; nil before the first.
func (f Follower) Tree() *hypernode.Tree { return f.tree.Load() }
