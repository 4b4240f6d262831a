// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/cmd/localcluster/nodespec"
	"github.com/caldera-scheduler/caldera/internal/demo"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
)

// stage is an API in memory, and all that works on it. Each of them has clients that are like those of an API server.
type stage struct {
	config *rest.Config
	client dynamic.Interface

	cancel  context.CancelFunc
	running sync.WaitGroup
	// ended has what one of them says that has stopped by itself.
	ended chan error
}

var _ demo.Stage = &stage{}

// newStage starts everything, and returns when the scheduler is active: it then has created the default queue.
func newStage(ctx context.Context) (*stage, error) {
	api, err := memory.New(clock.RealClock{})
	if err != nil {
		return nil, err
	}
	if err := addNodes(api); err != nil {
		return nil, err
	}
	server := api.Server()
	if server.Admit, err = newAdmission(); err != nil {
		return nil, fmt.Errorf("registering defaults: %w", err)
	}
	s := &stage{config: memory.Config(server), ended: make(chan error, 1)}
	if s.client, err = dynamic.NewForConfig(s.config); err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx)) // ends by strike only
	s.cancel = cancel
	if err = s.start(life); err == nil {
		err = demo.Await(ctx, s)
	}
	if err != nil {
		s.strike()
		return nil, err
	}
	return s, nil
}

// addNodes adds those that the examples are made for.
func addNodes(api *memory.API) error {
	shape, err := nodespec.ParseFlag(demo.Shape())
	if err != nil {
		return fmt.Errorf("describing the nodes: %w", err)
	}
	shape.Count = demo.Nodes
	for _, node := range nodespec.Nodes([]nodespec.Shape{shape}, version.Get().GitVersion, time.Now()) {
		if err := api.Add(node); err != nil {
			return fmt.Errorf("adding node %s: %w", node.Name, err)
		}
	}
	return nil
}

// start starts all that works on the API.
func (s *stage) start(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	scheduler, err := newScheduler(ctx, s.config, client)
	if err != nil {
		return err
	}
	controllers, err := newControllers(ctx, client)
	if err != nil {
		return err
	}
	kubelets := newKubelets(client)
	for name, run := range map[string]func(context.Context) error{"scheduler": scheduler.run, "controllers": controllers.run, "kubelets": kubelets.run} {
		s.running.Go(func() {
			err := run(ctx)
			if ctx.Err() != nil {
				return
			}
			select {
			case s.ended <- errors.Join(fmt.Errorf("the %s ended", name), err):
			default: // another one was first
			}
		})
	}
	return nil
}

// RESTConfig implements demo.Stage.
func (s *stage) RESTConfig() *rest.Config { return s.config }

// Apply implements demo.Stage.
func (s *stage) Apply(ctx context.Context, object *unstructured.Unstructured) error {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	_, err := s.client.Resource(resource).Namespace(metav1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{})
	return err
}

// Ended implements demo.Stage.
func (s *stage) Ended() error {
	select {
	case err := <-s.ended:
		return err
	default:
		return nil
	}
}

// strike stops everything, and waits for it.
func (s *stage) strike() {
	s.cancel()
	s.running.Wait()
}
