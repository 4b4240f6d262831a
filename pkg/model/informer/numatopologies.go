// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/cache"
	nodeinfo "volcano.sh/apis/pkg/apis/nodeinfo/v1alpha1"
	volcanoinformers "volcano.sh/apis/pkg/client/informers/externalversions"
)

// Numatopologies tells of the NUMA topologies of nodes, which Volcano's resource exporter writes. It returns once those
// present have been delivered; where the API is not served it looks for it until the context ends.
func Numatopologies(ctx context.Context, clients Clients, put, remove func(*nodeinfo.Numatopology)) error {
	watch := func() error {
		factory := volcanoinformers.NewSharedInformerFactory(clients.Volcano, 0)
		registration, err := factory.Nodeinfo().V1alpha1().Numatopologies().Informer().AddEventHandler(handlers(put, remove))
		if err != nil {
			return fmt.Errorf("watching Numatopologies: %w", err)
		}
		factory.Start(ctx.Done())
		if !cache.WaitFor(ctx, "", registration.HasSyncedChecker()) {
			return fmt.Errorf("waiting for Numatopologies: %w", context.Cause(ctx))
		}
		return nil
	}
	return whenServed(ctx, clients.Discovery, map[string]func() error{nodeinfo.SchemeGroupVersion.String(): watch})
}
