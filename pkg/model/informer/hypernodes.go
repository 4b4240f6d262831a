// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/cache"
	topology "volcano.sh/apis/pkg/apis/topology/v1alpha1"
	volcanoinformers "volcano.sh/apis/pkg/client/informers/externalversions"
)

// HyperNodes tells of Volcano's HyperNodes. It returns once those present have been delivered; where the API is not served it
// looks for it until the context ends.
func HyperNodes(ctx context.Context, clients Clients, put, remove func(*topology.HyperNode)) error {
	watch := func() error {
		factory := volcanoinformers.NewSharedInformerFactory(clients.Volcano, 0)
		registration, err := factory.Topology().V1alpha1().HyperNodes().Informer().AddEventHandler(handlers(put, remove))
		if err != nil {
			return fmt.Errorf("watching HyperNodes: %w", err)
		}
		factory.Start(ctx.Done())
		if !cache.WaitFor(ctx, "", registration.HasSyncedChecker()) {
			return fmt.Errorf("waiting for HyperNodes: %w", context.Cause(ctx))
		}
		return nil
	}
	return whenServed(ctx, clients.Discovery, map[string]func() error{topology.SchemeGroupVersion.String(): watch})
}
