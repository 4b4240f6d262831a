// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// readyReason is the reason Volcano gives on the condition Scheduled.
const readyReason = "tasks in gang are ready to be scheduled"

// Desired is the status a PodGroup should have. The phase goes by why the job waits now, what is shown of that may be older. now stamps conditions
// that change, id names the change.
func Desired(job *model.Job, before volcano.PodGroupStatus, reason, shown model.Reason, now metav1.Time, id string) volcano.PodGroupStatus {
	after := *before.DeepCopy()
	short := isShort(job, reason)
	after.Phase = phase(job, reason, short)
	after.Running = int32(job.Counts.ByStatus[model.Running])
	after.Succeeded = int32(job.Counts.ByStatus[model.Succeeded])
	after.Failed = int32(job.Counts.ByStatus[model.Failed])
	set := func(kind volcano.PodGroupConditionType, on bool, reason, message string) {
		setCondition(&after.Conditions, volcano.PodGroupCondition{
			Type: kind, Status: conditionStatus(on), Reason: reason, Message: message,
			LastTransitionTime: now, TransitionID: id,
		})
	}
	switch {
	case short:
		set(volcano.PodGroupUnschedulableType, true, string(shown.Kind), shown.Text())
		set(volcano.PodGroupScheduled, false, string(shown.Kind), job.Start.String())
	case job.Ready() && job.Counts.Total() > 0:
		set(volcano.PodGroupUnschedulableType, false, readyReason, "")
		set(volcano.PodGroupScheduled, true, readyReason, cmp.Or(job.Start.String(), model.Unconfirmed))
	}
	return after
}

func conditionStatus(on bool) corev1.ConditionStatus {
	if on {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// setCondition keeps one entry a type. It became what it is when its status or reason last changed: other numbers in the message are no
// transition. A condition that was never true is not recorded as false. The message of Scheduled says what the gang started with.
func setCondition(list *[]volcano.PodGroupCondition, c volcano.PodGroupCondition) {
	i := slices.IndexFunc(*list, func(have volcano.PodGroupCondition) bool { return have.Type == c.Type })
	switch {
	case i < 0 && c.Status == corev1.ConditionFalse:
	case i < 0:
		*list = append(*list, c)
	case (*list)[i].Status != c.Status || c.Status == corev1.ConditionTrue && (*list)[i].Reason != c.Reason:
		(*list)[i] = c
	case c.Status == corev1.ConditionTrue || c.Type == volcano.PodGroupScheduled:
		(*list)[i].Message = c.Message
	}
}

// isShort reports whether a job lacks something to be whole.
func isShort(job *model.Job, reason model.Reason) bool {
	return reason != (model.Reason{}) && (!job.Ready() || !admitted(job, reason)) && !onlyTerminating(job)
}

// Phase is the phase that the status of a job's PodGroup has, or would have. The reason is why the job waits; zero if it does not.
func Phase(job *model.Job, reason model.Reason) model.Phase {
	return model.Phase(phase(job, reason, isShort(job, reason)))
}

// phase is Volcano's computation at session close (reference section 3.10). A job that may have turns is Inqueue: its
// controller creates the pods from then on.
func phase(job *model.Job, reason model.Reason, short bool) volcano.PodGroupPhase {
	scheduled := job.Counts.Scheduled() + job.Counts.ReleasingPlaced
	switch {
	case job.Over():
		return volcano.PodGroupCompleted
	case short && job.Counts.ByStatus[model.Running] > 0:
		return volcano.PodGroupUnknown
	case short && scheduled == 0 && !admitted(job, reason):
		return volcano.PodGroupPending
	case job.Min() == 0 && scheduled == 0 && job.Counts.ByStatus[model.Pending] > 0:
		// Volcano calls this Completed, because none of none is left to run. Without pods it is Completed here too:
		// Volcano's controllers expect that.
		return volcano.PodGroupInqueue
	case scheduled >= job.Min() && scheduled == job.Counts.Completed() && !stopped(job):
		return volcano.PodGroupCompleted
	case scheduled >= job.Min():
		return volcano.PodGroupRunning
	case admitted(job, reason):
		return volcano.PodGroupInqueue
	}
	return volcano.PodGroupPending
}

// stopped reports whether tasks of a job that had not completed were deleted while they ran. A kubelet calls such a pod Failed just before it is
// gone. Volcano, when it looks in that moment, says Completed; here that would stay.
func stopped(job *model.Job) bool {
	return job.Counts.Killed > 0 && (job.Group == nil || job.Group.Phase != model.PhaseCompleted)
}

// admitted reports whether the job has been let into its queue and nothing but pods or room is missing.
func admitted(job *model.Job, reason model.Reason) bool {
	switch reason.Kind {
	case model.InvalidPodGroup, model.QueueNotFound, model.QueueClosed, model.QueueMisconfigured, model.QueueNotLeaf, model.NotAdmitted:
		return false
	}
	return job.LetIn()
}

// onlyTerminating is Volcano's exemption: a gang whose missing members terminate on their nodes, and that has none to
// place, is not short of anything.
func onlyTerminating(job *model.Job) bool {
	return job.Counts.ReleasingPlaced > 0 && job.Counts.ByStatus[model.Pending] == 0 &&
		job.Counts.Scheduled()+job.Counts.ReleasingPlaced >= job.Min()
}

// writeGroup brings the PodGroup's status up to date. Who is in conflict with another writer looks at what that wrote, once.
func (w *Writer) writeGroup(ctx context.Context, job *model.Job, group *volcano.PodGroup, s showing) error {
	err := w.updateGroup(ctx, job, group, s)
	if apierrors.IsConflict(err) {
		var there bool
		if group, there, err = w.sameGroup(ctx, group); there {
			err = w.updateGroup(ctx, job, group, s)
		}
	}
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("writing the status of PodGroup %s: %w", job.Key, err)
}

// sameGroup reads a PodGroup from the API server, and whether it is there: one that was deleted, or replaced by another one of
// its name, is not.
func (w *Writer) sameGroup(ctx context.Context, group *volcano.PodGroup) (live *volcano.PodGroup, there bool, err error) {
	live, err = w.volcano.SchedulingV1beta1().PodGroups(group.Namespace).Get(ctx, group.Name, metav1.GetOptions{})
	return live, err == nil && live.UID == group.UID, err
}

// updateGroup writes the status if it is to change.
func (w *Writer) updateGroup(ctx context.Context, job *model.Job, group *volcano.PodGroup, s showing) error {
	after := Desired(job, group.Status, s.reason, s.shown, metav1.NewTime(w.clock.Now()), string(uuid.NewUUID()))
	if equal(group.Status, after) {
		return nil
	}
	err := w.patchGroup(ctx, job, group, after)
	if err == nil && !scheduled(group.Status) && scheduled(after) {
		w.event(group, corev1.EventTypeNormal, scheduledReason, string(volcano.PodGroupReady))
	}
	return err
}

// scheduled reports whether the condition Scheduled is true.
func scheduled(status volcano.PodGroupStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c volcano.PodGroupCondition) bool {
		return c.Type == volcano.PodGroupScheduled && c.Status == corev1.ConditionTrue
	})
}

// patchGroup writes the status, to the subresource if the PodGroup's definition has one.
func (w *Writer) patchGroup(ctx context.Context, job *model.Job, group *volcano.PodGroup, after volcano.PodGroupStatus) error {
	patch, err := json.Marshal(map[string]any{
		// The UID makes the patch fail on a PodGroup that took the name of the one the model knows.
		"metadata": map[string]any{"uid": group.UID},
		"status": map[string]any{
			"phase": after.Phase, "conditions": after.Conditions,
			"running": after.Running, "succeeded": after.Succeeded, "failed": after.Failed,
		},
	})
	if err != nil {
		return fmt.Errorf("encoding the status of PodGroup %s: %w", job.Key, err)
	}
	client := w.volcano.SchedulingV1beta1().PodGroups(group.Namespace)
	if !w.noSubresource.Load() {
		_, err = client.Patch(ctx, group.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	_, err = client.Patch(ctx, group.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil {
		w.noSubresource.Store(true)
	}
	return err
}

func equal(a, b volcano.PodGroupStatus) bool {
	return a.Phase == b.Phase && a.Running == b.Running && a.Succeeded == b.Succeeded && a.Failed == b.Failed &&
		slices.Equal(a.Conditions, b.Conditions)
}
