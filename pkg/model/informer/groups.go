// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	native "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	coschedulingclient "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"
	coschedulinginformers "sigs.k8s.io/scheduler-plugins/pkg/generated/informers/externalversions"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"
	volcanoinformers "volcano.sh/apis/pkg/client/informers/externalversions"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// How often the API server is asked for group APIs: those that it did not serve at the last look, and those of which it
// could not say.
const (
	lookAgain = 15 * time.Second
	askAgain  = time.Second
)

// Clients are the group APIs, and what tells which of them are served.
type Clients struct {
	Discovery    discovery.ServerResourcesInterface
	Volcano      volcanoclient.Interface
	Coscheduling coschedulingclient.Interface
	// Kube has Kubernetes' own PodGroups.
	Kube kubernetes.Interface
	// VolcanoInformers, if not nil, are used instead of new informers of Volcano's objects; Groups starts them.
	VolcanoInformers volcanoinformers.SharedInformerFactory
}

// Connect returns clients of the API server that the scheduler of a profile is connected to, or of another one that it is told to use.
type Connect func(handle fwk.Handle) (Clients, error)

// NewClients returns clients of one API server.
func NewClients(config *rest.Config) (Clients, error) {
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return Clients{}, fmt.Errorf("building a discovery client: %w", err)
	}
	volcanoAPI, err := volcanoclient.NewForConfig(config)
	if err != nil {
		return Clients{}, fmt.Errorf("building a client for %s: %w", volcano.SchemeGroupVersion, err)
	}
	coschedulingAPI, err := coschedulingclient.NewForConfig(config)
	if err != nil {
		return Clients{}, fmt.Errorf("building a client for %s: %w", coscheduling.SchemeGroupVersion, err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Clients{}, fmt.Errorf("building a client for %s: %w", native.SchemeGroupVersion, err)
	}
	return Clients{Discovery: finder, Volcano: volcanoAPI, Coscheduling: coschedulingAPI, Kube: kube}, nil
}

// Groups feeds the model from the group APIs that the API server serves: Volcano's PodGroups and Queues, the PodGroups of
// scheduler-plugins, and Kubernetes' own. It returns once those present have been delivered, and goes on looking for the
// others until the context ends.
func Groups(ctx context.Context, state *model.State, clients Clients) error {
	unwatched := map[string]func() error{
		volcano.SchemeGroupVersion.String():      func() error { return watchVolcano(ctx, state, clients) },
		coscheduling.SchemeGroupVersion.String(): func() error { return watchCoscheduling(ctx, state, clients.Coscheduling) },
		native.SchemeGroupVersion.String():       func() error { return watchNative(ctx, state, clients.Kube) },
	}
	return whenServed(ctx, clients.Discovery, unwatched)
}

// whenServed begins to watch the APIs that are served. It returns once what is there has been delivered, and goes on looking
// for the others until the context ends.
func whenServed(ctx context.Context, finder discovery.ServerResourcesInterface, unwatched map[string]func() error) error {
	look := func(ctx context.Context) (sure bool, err error) { return lookForGroups(ctx, finder, unwatched) }
	if err := wait.PollUntilContextCancel(ctx, askAgain, true, look); err != nil {
		return fmt.Errorf("looking for group APIs: %w", err)
	}
	go func() {
		ticker := time.NewTicker(lookAgain)
		defer ticker.Stop()
		for len(unwatched) > 0 {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if _, err := look(ctx); err != nil {
					klog.FromContext(ctx).Error(err, "Looking for group APIs")
				}
			}
		}
	}()
	return nil
}

// errNotAllowed says that this process may not read a group API that is served.
var errNotAllowed = errors.New("not allowed to list its PodGroups: give the scheduler the rights in manifests/rbac/roles.yaml")

// lookForGroups begins to watch the group APIs that are served, and takes them off the list. It is sure when the API
// server has said of all of them whether they are.
func lookForGroups(ctx context.Context, finder discovery.ServerResourcesInterface, unwatched map[string]func() error) (sure bool, err error) {
	logger := klog.FromContext(ctx)
	sure = true
	for _, version := range slices.Sorted(maps.Keys(unwatched)) {
		watch := unwatched[version]
		switch _, err := finder.ServerResourcesForGroupVersion(version); {
		case apierrors.IsNotFound(err):
			logger.V(2).Info("Group API is not served yet", "groupVersion", version)
			continue
		case err != nil:
			// Its PodGroups may well exist: jobs must not be told that they do not.
			logger.Error(err, "Cannot tell whether a group API is served; asking again", "groupVersion", version)
			sure = false
			continue
		}
		switch err := watch(); {
		case errors.Is(err, errNotAllowed):
			// Its gangs wait, and nobody else does.
			logger.Error(err, "Cannot follow a group API; asking again", "groupVersion", version)
			continue
		case err != nil:
			return false, err
		}
		logger.V(2).Info("Watching group API", "groupVersion", version)
		delete(unwatched, version)
	}
	return sure, nil
}

func watchVolcano(ctx context.Context, state *model.State, clients Clients) error {
	factory := clients.VolcanoInformers
	if factory == nil {
		factory = volcanoinformers.NewSharedInformerFactory(clients.Volcano, 0)
	}
	groups, err := factory.Scheduling().V1beta1().PodGroups().Informer().AddEventHandler(handlers(
		func(g *volcano.PodGroup) { state.UpsertGroup(volcanoKey(g), volcanoGroup(g)) },
		func(g *volcano.PodGroup) { state.DeleteGroup(volcanoKey(g)) }))
	if err != nil {
		return fmt.Errorf("watching PodGroups: %w", err)
	}
	queues, err := factory.Scheduling().V1beta1().Queues().Informer().AddEventHandler(handlers(
		func(q *volcano.Queue) { state.UpsertQueue(volcanoQueue(q)) },
		func(q *volcano.Queue) { state.DeleteQueue(q.Name) }))
	if err != nil {
		return fmt.Errorf("watching Queues: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitFor(ctx, "", groups.HasSyncedChecker(), queues.HasSyncedChecker()) {
		return fmt.Errorf("waiting for PodGroups and Queues: %w", context.Cause(ctx))
	}
	return nil
}

func watchCoscheduling(ctx context.Context, state *model.State, client coschedulingclient.Interface) error {
	factory := coschedulinginformers.NewSharedInformerFactory(client, 0)
	groups, err := factory.Scheduling().V1alpha1().PodGroups().Informer().AddEventHandler(handlers(
		func(g *coscheduling.PodGroup) { state.UpsertGroup(coschedulingKey(g), coschedulingGroup(g)) },
		func(g *coscheduling.PodGroup) { state.DeleteGroup(coschedulingKey(g)) }))
	if err != nil {
		return fmt.Errorf("watching scheduling.x-k8s.io PodGroups: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitFor(ctx, "", groups.HasSyncedChecker()) {
		return fmt.Errorf("waiting for scheduling.x-k8s.io PodGroups: %w", context.Cause(ctx))
	}
	return nil
}
