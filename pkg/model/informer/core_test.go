// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
)

// batch is the scheduler name whose pods are tasks in these tests.
const batch = "volcano"

func newPod(name string, uid types.UID, options ...func(*corev1.Pod)) *corev1.Pod {
	p := builders.Pod("ns", name).UID(string(uid)).
		Req(builders.CPU("1")).Phase(corev1.PodPending).Obj()
	for _, change := range options {
		change(p)
	}
	return p
}

func in(group string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[model.GroupNameAnnotation] = group }
}

func on(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning }
}

func succeeded(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}}}
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
}

// newState returns a model of the batch scheduler.
func newState(observers ...func(model.Change)) *model.State {
	state := model.NewState(observers...)
	state.AddScheduler(batch)
	return state
}

func uidsOf(job *model.Job) []types.UID {
	if job == nil {
		return nil
	}
	var uids []types.UID
	for _, t := range job.Tasks {
		uids = append(uids, t.UID)
	}
	slices.Sort(uids)
	return uids
}

var train = model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "train"}

// startCore feeds a model from a cluster of the objects, and returns when all of them should be in it.
func startCore(t *testing.T, state *model.State, objects ...runtime.Object) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset(objects...)
	follow(t, state, client)
	return client
}

func follow(t *testing.T, state *model.State, client *fake.Clientset) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	synced, err := informer.Core(state, factory)
	if err != nil {
		t.Fatal(err)
	}
	quotas, err := informer.Quotas(state, factory)
	if err != nil {
		t.Fatal(err)
	}
	synced = append(synced, quotas)
	owners, err := informer.NewOwners(state, factory, client, clock.RealClock{}, informer.OwnerPatience)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	check(t, owners.Run(t.Context()))
	if !cache.WaitFor(t.Context(), "", synced...) {
		t.Fatal("the informers are not in sync")
	}
	// They have listed. This client does not tell a watch of what was before it.
	synctest.Wait()
}

func TestCoreFollowsPodsNodesAndPriorityClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := newState()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}}}
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7}
		client := startCore(t, state, newPod("a", "a-1", in("train")), newPod("b", "b-1", in("train"), on("node-0")), node, class)
		state.UpsertGroup(train, &model.Group{MinMember: 2, PriorityClass: "high", Queue: "default"})

		// facts are what the model has from each of the kinds.
		type facts struct {
			Members    []types.UID
			Priority   int32
			Nodes      int
			Idle, Used string
		}
		look := func() facts {
			job, totals := state.Job(train), state.Totals()
			return facts{
				Members: uidsOf(job), Priority: job.Priority, Nodes: totals.Nodes,
				Idle: resource.NewMilliQuantity(totals.Idle().Get(corev1.ResourceCPU), resource.DecimalSI).String(), Used: totals.Used.String(),
			}
		}
		want := facts{Members: []types.UID{"a-1", "b-1"}, Priority: 7, Nodes: 1, Idle: "3", Used: "cpu=1 pods=1"}
		if diff := cmp.Diff(want, look()); diff != "" {
			t.Errorf("at the start (-want,+got)\n%s", diff)
		}

		ctx := t.Context()
		check(t, client.CoreV1().Pods("ns").Delete(ctx, "b", metav1.DeleteOptions{}))
		node = node.DeepCopy()
		node.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("6")
		_, err := client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		check(t, err)
		check(t, client.SchedulingV1().PriorityClasses().Delete(ctx, "high", metav1.DeleteOptions{}))
		synctest.Wait()
		want = facts{Members: []types.UID{"a-1"}, Nodes: 1, Idle: "6", Used: "cpu=0 pods=0"}
		if diff := cmp.Diff(want, look()); diff != "" {
			t.Errorf("after changes (-want,+got)\n%s", diff)
		}

		check(t, client.CoreV1().Nodes().Delete(ctx, "node-0", metav1.DeleteOptions{}))
		synctest.Wait()
		if got := state.Totals().Nodes; got != 0 {
			t.Errorf("%d nodes after the only one was deleted", got)
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// While a watch is interrupted nobody tells of what happens, and afterwards it is read off a list.
func TestPodsThatGoUnseenAreGone(t *testing.T) {
	for name, tc := range map[string]struct {
		// unseen is what happens while nobody watches.
		unseen func(*testing.T, *fake.Clientset)
		want   []types.UID
	}{
		"a pod is deleted": {
			unseen: func(t *testing.T, client *fake.Clientset) {
				check(t, client.CoreV1().Pods("ns").Delete(t.Context(), "worker-0", metav1.DeleteOptions{}))
			},
		},
		"a pod is deleted and another one created under its name": {
			unseen: func(t *testing.T, client *fake.Clientset) {
				check(t, client.CoreV1().Pods("ns").Delete(t.Context(), "worker-0", metav1.DeleteOptions{}))
				_, err := client.CoreV1().Pods("ns").Create(t.Context(), newPod("worker-0", "second", in("train")), metav1.CreateOptions{})
				check(t, err)
			},
			want: []types.UID{"second"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				state := newState()
				client := fake.NewClientset(newPod("worker-0", "first", in("train"), on("node-0")), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}})
				deaf := watch.NewFake()
				client.PrependWatchReactor("pods", clienttesting.DefaultWatchReactor(deaf, nil))
				follow(t, state, client)
				if diff := cmp.Diff([]types.UID{"first"}, uidsOf(state.Job(train))); diff != "" {
					t.Fatalf("members at the start (-want,+got)\n%s", diff)
				}
				tc.unseen(t, client)
				deaf.Stop()
				time.Sleep(time.Minute) // The informer lists again after a back-off.
				if diff := cmp.Diff(tc.want, uidsOf(state.Job(train))); diff != "" {
					t.Errorf("members (-want,+got)\n%s", diff)
				}
				if used := state.Totals().Used.Get(corev1.ResourceCPU); used != 0 {
					t.Errorf("%d millicores are used by a pod that is gone", used)
				}
			})
		})
	}
}

func TestCoreTellsOfWhatTheModelKeepsNoStateFor(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "x"}
	for name, tc := range map[string]struct {
		object runtime.Object
		want   model.Event
	}{
		"a volume":           {&corev1.PersistentVolume{ObjectMeta: meta}, model.StorageChanged},
		"a claim":            {&corev1.PersistentVolumeClaim{ObjectMeta: meta}, model.StorageChanged},
		"a storage class":    {&storagev1.StorageClass{ObjectMeta: meta}, model.StorageChanged},
		"a driver on a node": {&storagev1.CSINode{ObjectMeta: meta}, model.StorageChanged},
		"a driver":           {&storagev1.CSIDriver{ObjectMeta: meta}, model.StorageChanged},
		"storage capacity":   {&storagev1.CSIStorageCapacity{ObjectMeta: meta}, model.StorageChanged},
		"a resource claim":   {&resourcev1.ResourceClaim{ObjectMeta: meta}, model.DevicesChanged},
		"devices of a node":  {&resourcev1.ResourceSlice{ObjectMeta: meta}, model.DevicesChanged},
		"a device class":     {&resourcev1.DeviceClass{ObjectMeta: meta}, model.DevicesChanged},
		"a ConfigMap, which helps no pod": {
			&corev1.ConfigMap{ObjectMeta: meta}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := make(chan model.Event, 10)
				startCore(t, newState(func(c model.Change) { events <- c.Events }), tc.object)
				close(events)
				var got model.Event
				for e := range events {
					got |= e
				}
				if got != tc.want {
					t.Errorf("events %b, want %b", got, tc.want)
				}
			})
		})
	}
}

func TestFinishedPodsCountForTheirGang(t *testing.T) {
	// facts are what is needed of a pod that has finished.
	type facts struct {
		Job     model.JobKey
		Role    string
		Status  model.Status
		Profile string
		// Ballast is how many containers, container statuses and managed fields are kept, which nobody needs.
		Ballast int
	}
	labelled := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels[key] = value }
	}
	role := func(p *corev1.Pod) { p.Annotations[model.RoleKey] = "worker" }
	other := model.JobKey{Source: model.FromCoscheduling, Namespace: "ns", Name: "other"}
	for name, tc := range map[string]struct {
		pod *corev1.Pod
		// want is nil when the model does not take the pod.
		want *facts
	}{
		"a member of a PodGroup": {
			newPod("p", "p", in("train"), role, succeeded), &facts{Job: train, Role: "worker", Status: model.Succeeded, Profile: batch},
		},
		"a member that failed": {
			newPod("p", "p", in("train"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
			&facts{Job: train, Status: model.Failed, Profile: batch},
		},
		"a member by label, its role too": {
			newPod("p", "p", labelled(model.CoschedulingLabel, "other"), labelled(model.RoleKey, "ps"), succeeded),
			&facts{Job: other, Role: "ps", Status: model.Succeeded, Profile: batch},
		},
		"a pod without a group is done with":    {newPod("p", "p", succeeded), nil},
		"a pod of another scheduler is no task": {newPod("p", "p", in("train"), succeeded, func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				state := newState()
				client := fake.NewClientset(tc.pod)
				check(t, informer.Finished(t.Context(), state, client, atOnce()))
				synctest.Wait()
				var got *facts
				if task := state.Task("p"); task != nil {
					got = &facts{task.Job, task.Role, task.Status, task.Pod.Spec.SchedulerName, len(task.Pod.Spec.Containers) + len(task.Pod.Status.ContainerStatuses) + len(task.Pod.ManagedFields)}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want,+got)\n%s", diff)
				}
				check(t, client.CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{}))
				synctest.Wait()
				if state.Task("p") != nil {
					t.Error("the pod is deleted and still counts")
				}
			})
		})
	}
}

// atOnce is closed.
func atOnce() <-chan struct{} {
	known := make(chan struct{})
	close(known)
	return known
}

// TestFinishedPodsWaitForTheirOwners: until the controllers are known nobody can tell of which gang a finished pod is.
func TestFinishedPodsWaitForTheirOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state, known, told := newState(), make(chan struct{}), make(chan error, 1)
		go func() {
			told <- informer.Finished(t.Context(), state, fake.NewClientset(newPod("p", "p", in("train"), succeeded)), known)
		}()
		synctest.Wait()
		if len(told) > 0 || state.Task("p") != nil {
			t.Error("a finished pod is told before its owner may be known")
		}
		close(known)
		synctest.Wait()
		if len(told) == 0 || state.Task("p") == nil {
			t.Error("a finished pod is not told though the owners are known")
		}
	})
}

func TestFinishedAsksForFinishedPodsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		check(t, informer.Finished(t.Context(), newState(), client, atOnce()))
		var selectors []string
		for _, action := range client.Actions() {
			if list, ok := action.(interface {
				GetListRestrictions() clienttesting.ListRestrictions
			}); ok {
				selectors = append(selectors, list.GetListRestrictions().Fields.String())
			}
		}
		want := []string{"status.phase!=Pending,status.phase!=Running,status.phase!=Unknown"}
		if diff := cmp.Diff(want, selectors); diff != "" {
			t.Errorf("what is listed (-want,+got)\n%s", diff)
		}
	})
}

func TestFinishedGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := informer.Finished(ctx, newState(), fake.NewClientset(), atOnce()); err == nil {
			t.Error("finished pods are said to be known though nobody asked for them")
		}
	})
}
