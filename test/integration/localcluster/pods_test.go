// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"
)

func TestBoundPodRunsUntilDeleted(t *testing.T) {
	t.Parallel()
	client := clientOf(t, shared)
	ns := newNamespace(t, client)
	createPod(t, client, ns, newPod("plain", nil))
	awaitPod(t, client, ns, "plain", "the pod to be ready", func(pod *corev1.Pod) bool {
		return pod != nil && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" && isReady(pod)
	})
	if err := client.CoreV1().Pods(ns).Delete(t.Context(), "plain", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, client, ns, "plain", "the pod to be gone", gone)
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestAnnotationsDecideHowAPodEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        corev1.PodPhase
		atLeast     time.Duration
	}{
		"a pod with run-for succeeds after that time": {
			annotations: map[string]string{"localcluster.caldera.dev/run-for": "1500ms"},
			want:        corev1.PodSucceeded, atLeast: 1500 * time.Millisecond,
		},
		"a pod with run-for and fail fails after that time": {
			annotations: map[string]string{
				"localcluster.caldera.dev/run-for": "200ms", "localcluster.caldera.dev/fail": "true",
			},
			want: corev1.PodFailed, atLeast: 200 * time.Millisecond,
		},
		"a pod with fail alone fails": {
			annotations: map[string]string{"localcluster.caldera.dev/fail": "true"},
			want:        corev1.PodFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := clientOf(t, shared)
			ns := newNamespace(t, client)
			created := time.Now()
			createPod(t, client, ns, newPod("pod", tc.annotations))
			awaitPod(t, client, ns, "pod", string(tc.want), hasPhase(tc.want))
			if ran := time.Since(created); ran < tc.atLeast {
				t.Errorf("ended after %s, want at least %s", ran, tc.atLeast)
			}
		})
	}
}

func TestUnrelatedChangeDoesNotProlongARun(t *testing.T) {
	t.Parallel()
	client := clientOf(t, shared)
	ns := newNamespace(t, client)
	createPod(t, client, ns, newPod("pod", map[string]string{"localcluster.caldera.dev/run-for": "2s"}))
	awaitPod(t, client, ns, "pod", "the pod to run", hasPhase(corev1.PodRunning))
	running := time.Now()
	stop := time.NewTicker(200 * time.Millisecond)
	defer stop.Stop()
	for range 9 { // 1.8 s of changes: a delay that restarts would end 2 s after the last of them
		<-stop.C
		patch := []byte(`{"metadata":{"labels":{"changed":"` + time.Now().Format("150405.000") + `"}}}`)
		_, err := client.CoreV1().Pods(ns).Patch(t.Context(), "pod", types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	awaitPod(t, client, ns, "pod", "the pod to succeed", hasPhase(corev1.PodSucceeded))
	if ran := time.Since(running); ran > 3500*time.Millisecond {
		t.Errorf("ran %s after label changes, want 2s", ran)
	}
}

// TestAPodCreatedAgainUnderItsNameIsLeftAlone: what the kubelets still have in hand for a pod that was deleted does not meet the
// next one of that name, which is created the moment the first is gone, as by a StatefulSet, and has no node yet.
func TestAPodCreatedAgainUnderItsNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	client := clientOf(t, shared)
	ns := newNamespace(t, client)
	const rounds, width = 5, 10
	pods := client.CoreV1().Pods(ns)
	var replacing errgroup.Group
	for i := range width {
		replacing.Go(func() error {
			name := fmt.Sprintf("web-%d", i)
			for range rounds {
				if err := replace(t.Context(), pods, name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := replacing.Wait(); err != nil {
		t.Fatal(err)
	}
}

// replace has a pod of a name run, deletes it, and has another one without a node wait in its place for a while.
func replace(ctx context.Context, pods typedcorev1.PodInterface, name string) error {
	const calm = time.Second
	bound, err := pods.Create(ctx, newPod(name, nil), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	changes, err := pods.Watch(ctx, metav1.SingleObject(bound.ObjectMeta))
	if err != nil {
		return err
	}
	defer changes.Stop()
	var asked bool
	for change := range changes.ResultChan() {
		pod, ok := change.Object.(*corev1.Pod)
		switch {
		case !ok:
			return apierrors.FromObject(change.Object)
		case change.Type == watch.Deleted:
			return stays(ctx, pods, name, calm)
		case pod.Status.Phase == corev1.PodRunning && !asked:
			asked = true
			if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("the watch of pod %s ended", name)
}

// stays creates a pod without a node and reports what others do to it within a time.
func stays(ctx context.Context, pods typedcorev1.PodInterface, name string, during time.Duration) error {
	waiting := newPod(name, nil)
	waiting.Spec.NodeName = ""
	created, err := pods.Create(ctx, waiting, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	time.Sleep(during)
	pod, err := pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("a pod that nobody deleted: %w", err)
	}
	if pod.UID != created.UID || pod.Status.Phase != corev1.PodPending {
		return fmt.Errorf("pod %s without a node is %s", name, pod.Status.Phase)
	}
	return pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
}

func TestDeletedPodWithFinalizerEndsAndStays(t *testing.T) {
	t.Parallel()
	client := clientOf(t, shared)
	ns := newNamespace(t, client)
	pod := newPod("held", nil)
	pod.Finalizers = []string{"example.test/hold"}
	createPod(t, client, ns, pod)
	awaitPod(t, client, ns, "held", "the pod to run", hasPhase(corev1.PodRunning))
	if err := client.CoreV1().Pods(ns).Delete(t.Context(), "held", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, client, ns, "held", "the pod to end but stay", func(pod *corev1.Pod) bool {
		return pod != nil && pod.Status.Phase == corev1.PodFailed && ptr.Deref(pod.DeletionGracePeriodSeconds, -1) == 0
	})
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client.CoreV1().Pods(ns).Patch(t.Context(), "held", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, client, ns, "held", "the pod to be gone", gone)
}

func TestTerminateAfterDelaysTheEnd(t *testing.T) {
	t.Parallel()
	client := clientOf(t, shared)
	ns := newNamespace(t, client)
	createPod(t, client, ns, newPod("slow", map[string]string{"localcluster.caldera.dev/terminate-after": "1500ms"}))
	awaitPod(t, client, ns, "slow", "the pod to run", hasPhase(corev1.PodRunning))
	deleted := time.Now()
	if err := client.CoreV1().Pods(ns).Delete(t.Context(), "slow", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, client, ns, "slow", "the pod to be gone", gone)
	if took := time.Since(deleted); took < 1500*time.Millisecond {
		t.Errorf("gone after %s, want at least 1.5s", took)
	}
}

func TestBadDurationIsReportedAsEvent(t *testing.T) {
	t.Parallel()
	client := clientOf(t, shared)
	ns := newNamespace(t, client)
	createPod(t, client, ns, newPod("bad", map[string]string{"localcluster.caldera.dev/run-for": "soon"}))
	awaitEvent(t, client, ns, "BadAnnotation")
}

func TestJobCompletes(t *testing.T) {
	t.Parallel()
	client := clientOf(t, shared)
	ns := newNamespace(t, client)
	template := corev1.PodTemplateSpec{Spec: newPod("", nil).Spec}
	_, err := client.BatchV1().Jobs(ns).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec:       batchv1.JobSpec{Completions: ptr.To[int32](3), Parallelism: ptr.To[int32](3), Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	awaitJob(t, client, ns, "job", "the job to complete", func(job *batchv1.Job) bool {
		return job.Status.Succeeded == 3 && job.Status.CompletionTime != nil
	})
}
