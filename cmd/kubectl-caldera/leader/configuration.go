// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"fmt"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// Configuration reads the configuration that is in force in the scheduler that leads.
func (c *Client) Configuration(ctx context.Context) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	cluster := &v1alpha1.ClusterView{}
	if err := c.Get(ctx, v1alpha1.ClusterViews, "", v1alpha1.ClusterName, cluster); err != nil {
		return nil, fmt.Errorf("asking the scheduler for its configuration, which --config would give: %w", err)
	}
	text := cluster.Status.Leader.Configuration
	if text == "" {
		return nil, errors.New("the scheduler does not tell its configuration: give it with --config")
	}
	config, err := profile.Decode("the scheduler's configuration", []byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: give it with --config", err)
	}
	return config, nil
}
