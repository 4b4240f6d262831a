// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package schedulerprocess

import (
	"context"
	"strconv"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

// viewsNamespace is that of the Service in manifests/visibility.
const viewsNamespace = "caldera-system"

// InstallViews installs the API of views in a cluster. A scheduler of it that is started with the arguments serves them while it leads.
func InstallViews(ctx context.Context, cluster *localcluster.Cluster) (args []string, err error) {
	if err := cluster.Install(ctx, manifests.All, "deploy/namespace.yaml", "visibility/apiservice.yaml", "visibility/roles.yaml"); err != nil {
		return nil, err
	}
	return ViewsArgs()
}

// ViewsArgs are the arguments of one more scheduler that serves views.
func ViewsArgs() ([]string, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	return []string{"--visibility-port=" + strconv.Itoa(port), "--visibility-namespace=" + viewsNamespace}, nil
}
