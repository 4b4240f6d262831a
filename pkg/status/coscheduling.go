// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	coschedulingclient "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// WriteCoscheduling has the writer keep the status of scheduler-plugins' PodGroups. It must be called before Run.
func (w *Writer) WriteCoscheduling(client coschedulingclient.Interface) { w.coscheduling = client }

// CoschedulingStatus is the status that a PodGroup of scheduler-plugins should have: what its own controller would write, so that both may run.
// That one takes a step each time it looks, from Pending to Scheduling to Running; here the last of them is written. Finished and Failed are
// final. Source: sigs.k8s.io/scheduler-plugins pkg/controllers/podgroup_controller.go.
func CoschedulingStatus(job *model.Job, before coscheduling.PodGroupStatus) coscheduling.PodGroupStatus {
	if before.Phase == coscheduling.PodGroupFinished || before.Phase == coscheduling.PodGroupFailed {
		return before
	}
	after, least := before, job.Min()
	running, succeeded, failed := job.Counts.ByStatus[model.Running], job.Counts.ByStatus[model.Succeeded], job.Counts.ByStatus[model.Failed]
	after.Running, after.Succeeded, after.Failed = int32(running), int32(succeeded), int32(failed)
	switch {
	case job.Counts.Total() == 0 || job.Counts.Total() < least:
		after.Phase = coscheduling.PodGroupPending
		return after
	case succeeded >= least && least > 0:
		after.Phase = coscheduling.PodGroupFinished
	case failed > 0 && failed+running+succeeded >= least:
		after.Phase = coscheduling.PodGroupFailed
	case running+succeeded >= least:
		after.Phase = coscheduling.PodGroupRunning
	default:
		after.Phase = coscheduling.PodGroupScheduling
	}
	return after
}

// occupant names the owners of a pod as the status of scheduler-plugins' PodGroups does, "namespace/name" each; empty if it has none.
func occupant(t *model.Task) string {
	var owners []string
	for _, o := range t.Pod.OwnerReferences {
		owners = append(owners, t.Pod.Namespace+"/"+o.Name)
	}
	slices.Sort(owners)
	return strings.Join(owners, ",")
}

// writeCoscheduling brings the status of a PodGroup of scheduler-plugins up to date.
func (w *Writer) writeCoscheduling(ctx context.Context, job *model.Job, group *coscheduling.PodGroup) error {
	if w.coscheduling == nil {
		return nil
	}
	after := CoschedulingStatus(job, group.Status)
	if after.OccupiedBy == "" && after.Phase != coscheduling.PodGroupPending {
		if tasks := w.tasks(job.Key, func(t *model.Task) bool { return occupant(t) != "" }); len(tasks) > 0 {
			after.OccupiedBy = occupant(tasks[0])
		}
	}
	if after == group.Status {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		// The UID makes the patch fail on a PodGroup that took the name of the one the model knows.
		"metadata": map[string]any{"uid": group.UID},
		"status": map[string]any{
			"phase": after.Phase, "occupiedBy": after.OccupiedBy,
			"running": after.Running, "succeeded": after.Succeeded, "failed": after.Failed,
		},
	})
	if err != nil {
		return fmt.Errorf("encoding the status of PodGroup %s: %w", job.Key, err)
	}
	client := w.coscheduling.SchedulingV1alpha1().PodGroups(group.Namespace)
	_, err = client.Patch(ctx, group.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("writing the status of PodGroup %s: %w", job.Key, err)
}
