// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
)

// workers is how many objects of a kind are looked at at a time, as kube-controller-manager does by default.
const workers = 5

// controllers are those of kube-controller-manager that the examples need.
type controllers struct {
	informers   informers.SharedInformerFactory
	jobs        *job.Controller
	deployments *deployment.DeploymentController
	replicaSets *replicaset.ReplicaSetController
}

func newControllers(ctx context.Context, client kubernetes.Interface) (*controllers, error) {
	c := &controllers{informers: informers.NewSharedInformerFactory(client, 0)}
	pods, apps, scheduling := c.informers.Core().V1().Pods(), c.informers.Apps().V1(), c.informers.Scheduling().V1beta1()
	var err error
	c.jobs, err = job.NewController(ctx, client, pods, c.informers.Batch().V1().Jobs(), scheduling.Workloads(), scheduling.PodGroups())
	if err != nil {
		return nil, fmt.Errorf("building the controller of Jobs: %w", err)
	}
	c.deployments, err = deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), pods, client)
	if err != nil {
		return nil, fmt.Errorf("building the controller of Deployments: %w", err)
	}
	c.replicaSets = replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), pods, client, replicaset.BurstReplicas)
	return c, nil
}

// run runs them until ctx ends.
func (c *controllers) run(ctx context.Context) error {
	c.informers.StartWithContext(ctx)
	defer c.informers.Shutdown()
	var running sync.WaitGroup
	for _, run := range []func(context.Context, int){c.jobs.Run, c.deployments.Run, c.replicaSets.Run} {
		running.Go(func() { run(ctx, workers) })
	}
	running.Wait()
	return nil
}
