// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package numaaware

import (
	"context"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/cpuset"
	nodeinfo "volcano.sh/apis/pkg/apis/nodeinfo/v1alpha1"

	"github.com/caldera-scheduler/caldera/pkg/model/informer"
)

// Layouts lets tests follow Numatopologies without a scheduler.
type Layouts struct{ *layouts }

// NewLayouts returns what is known before anything has been read. The function is called after each change.
func NewLayouts(changed func()) Layouts { return Layouts{newLayouts(changed)} }

// Follow reads Numatopologies until the context ends.
func (l Layouts) Follow(ctx context.Context, clients informer.Clients) { l.follow(ctx, clients) }

// Free are the CPUs of a node that may be given to pods; empty when nothing is known of it.
func (l Layouts) Free(node string) string {
	if known := l.of(node); known != nil {
		return known.free.String()
	}
	return ""
}

// Complete reports whether what was there has been read.
func (l Layouts) Complete() bool {
	_, complete := l.version()
	return complete
}

// Left are the CPUs of a node that the pods on it leave, by what its Numatopology tells.
func Left(o *nodeinfo.Numatopology, pods []fwk.PodInfo) cpuset.CPUSet { return read(o).left(pods) }
