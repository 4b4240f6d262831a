// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"

	native "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// watchNative follows Kubernetes' own PodGroups. It has a factory of its own: the scheduler's would wait for an API that many servers do not
// serve. Whoever updated the scheduler may not have updated its role: an informer would wait for ever then.
func watchNative(ctx context.Context, state *model.State, client kubernetes.Interface) error {
	if _, err := client.SchedulingV1beta1().PodGroups("").List(ctx, metav1.ListOptions{Limit: 1}); apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	groups, err := factory.Scheduling().V1beta1().PodGroups().Informer().AddEventHandler(handlers(
		func(g *native.PodGroup) { state.UpsertGroup(nativeKey(g), nativeGroup(g)) },
		func(g *native.PodGroup) { state.DeleteGroup(nativeKey(g)) }))
	if err != nil {
		return fmt.Errorf("watching scheduling.k8s.io PodGroups: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitFor(ctx, "", groups.HasSyncedChecker()) {
		return fmt.Errorf("waiting for scheduling.k8s.io PodGroups: %w", context.Cause(ctx))
	}
	return nil
}

// nativeGroup reads a PodGroup of Kubernetes' own. One of the policy basic has no minimum: each of its pods starts on its own.
func nativeGroup(g *native.PodGroup) *model.Group {
	group := &model.Group{
		UID:           g.UID,
		Queue:         g.Annotations[model.QueueAnnotation],
		PriorityClass: g.Spec.PriorityClassName,
		Priority:      g.Spec.Priority,
		Created:       g.CreationTimestamp.Time,
		Object:        g,
	}
	if gang := g.Spec.SchedulingPolicy.Gang; gang != nil {
		group.MinMember = int(gang.MinCount)
	}
	if mode := g.Spec.DisruptionMode; mode != nil {
		group.Whole = mode.All != nil
	}
	if c := apimeta.FindStatusCondition(g.Status.Conditions, native.PodGroupInitiallyScheduled); c != nil && c.Status == metav1.ConditionTrue {
		if group.Start = model.ParseStart(c.Message); group.Start.Tasks == 0 && c.Message != model.Unconfirmed {
			// Another scheduler says that it was whole, not with how many.
			group.Start.Tasks = max(1, group.MinMember)
		}
	}
	if c := g.Spec.SchedulingConstraints; c != nil && len(c.Topology) > 0 {
		// The API allows one.
		group.TopologyKey = c.Topology[0].Key
	}
	readTerms(group, "PodGroup "+nativeKey(g).String(), g.Annotations)
	if parent := g.Spec.ParentCompositePodGroupName; parent != nil {
		group.Problem = model.Problems(group.Problem, fmt.Sprintf(
			"spec.parentCompositePodGroupName is %q: composite pod groups are not read, and the group starts by itself", *parent))
	}
	if len(g.Spec.ResourceClaims) > 0 {
		group.Problem = model.Problems(group.Problem,
			"spec.resourceClaims has no effect: claims of a group are not read; let each pod name its claims in spec.resourceClaims")
	}
	return group
}

func nativeKey(g *native.PodGroup) model.JobKey { return keyOf(model.FromNative, g) }
