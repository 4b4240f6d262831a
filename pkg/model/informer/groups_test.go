// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	coschedulingfake "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned/fake"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanofake "volcano.sh/apis/pkg/client/clientset/versioned/fake"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	modelresource "github.com/caldera-scheduler/caldera/pkg/resource"
)

var (
	created      = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	bothGroupAPI = []string{"scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"}
)

// finder is what an API server says of the group versions it serves.
type finder struct {
	discovery.ServerResourcesInterface
	mu     sync.Mutex // guards the rest
	served []string
	broken bool
}

func (f *finder) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.broken:
		return nil, apierrors.NewServiceUnavailable("the server is starting")
	case slices.Contains(f.served, version):
		return &metav1.APIResourceList{GroupVersion: version}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
}

func (f *finder) set(broken bool, served ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken, f.served = broken, served
}

// groupAPIs are the clients of an API server that serves the group versions and holds the objects.
func groupAPIs(served []string, volcanoObjects, coschedulingObjects []runtime.Object) (informer.Clients, *finder) {
	f := &finder{served: served}
	return informer.Clients{
		Discovery:    f,
		Volcano:      volcanofake.NewSimpleClientset(volcanoObjects...),
		Coscheduling: coschedulingfake.NewSimpleClientset(coschedulingObjects...),
	}, f
}

// listFirst makes informers list before they watch: these fake API servers do not stream lists.
func listFirst(t *testing.T) {
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false)
}

func TestVolcanoPodGroups(t *testing.T) {
	listFirst(t)
	for name, tc := range map[string]struct {
		spec volcano.PodGroupSpec
		want model.Group
	}{
		"every field that is read": {
			volcano.PodGroupSpec{
				MinMember: 4, MinTaskMember: map[string]int32{"ps": 1, "worker": 3}, Queue: "research", PriorityClassName: "high",
				MinResources: &corev1.ResourceList{
					"cpu": resource.MustParse("1500m"), "nvidia.com/gpu": resource.MustParse("8"), "requests.cpu": resource.MustParse("1500m"),
				},
			},
			model.Group{
				MinMember: 4, MinTaskMember: map[string]int{"ps": 1, "worker": 3}, Queue: "research", PriorityClass: "high",
				MinResources: modelresource.Vector{{Name: "cpu", Value: 1500}, {Name: "nvidia.com/gpu", Value: 8}},
				MinQuota:     modelresource.Vector{{Name: "cpu", Value: 1500}, {Name: "nvidia.com/gpu", Value: 8}, {Name: "requests.cpu", Value: 1500}},
			},
		},
		"minimum resources beyond any cluster are bounded": {
			volcano.PodGroupSpec{MinResources: &corev1.ResourceList{"memory": resource.MustParse("5Ei")}},
			model.Group{
				MinResources: modelresource.Vector{{Name: "memory", Value: modelresource.MostOfGroup}},
				MinQuota:     modelresource.Vector{{Name: "memory", Value: modelresource.MostOfGroup}},
			},
		},
		"without a queue it names none": {
			volcano.PodGroupSpec{MinMember: 1}, model.Group{MinMember: 1},
		},
		"no role minimums are not the same as some of zero": {
			volcano.PodGroupSpec{MinTaskMember: map[string]int32{}}, model.Group{},
		},
		"minimum resources of nothing are not the same as none": {
			volcano.PodGroupSpec{MinResources: &corev1.ResourceList{}},
			model.Group{MinResources: modelresource.Vector{}},
		},
		"a negative minimum is kept, for the job to complain of": {
			volcano.PodGroupSpec{MinMember: -1}, model.Group{MinMember: -1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				object := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "u", CreationTimestamp: created}, Spec: tc.spec}
				clients, _ := groupAPIs(bothGroupAPI, []runtime.Object{object}, nil)
				state := newState()
				followGroups(t, state, clients)
				tc.want.UID, tc.want.Created, tc.want.Object = "u", created.Time, object
				if diff := cmp.Diff(&tc.want, state.Job(train).Group); diff != "" {
					t.Errorf("(-want,+got)\n%s", diff)
				}
				check(t, clients.Volcano.SchedulingV1beta1().PodGroups("ns").Delete(t.Context(), "train", metav1.DeleteOptions{}))
				synctest.Wait()
				if state.Job(train) != nil {
					t.Error("the PodGroup is deleted and its job still there")
				}
			})
		})
	}
}

// TestTheStartOfAGang: the condition Scheduled says whether a gang was whole, whoever wrote it.
func TestTheStartOfAGang(t *testing.T) {
	listFirst(t)
	for name, tc := range map[string]struct {
		status  corev1.ConditionStatus
		message string
		want    int
	}{
		"Caldera's, whole":                {corev1.ConditionTrue, model.Start{Tasks: 2}.String(), 2},
		"Caldera's, whole once":           {corev1.ConditionFalse, model.Start{Tasks: 2}.String(), 2},
		"Caldera's, binds are on the way": {corev1.ConditionTrue, "not all members of its minimum are bound yet", 0},
		"Caldera's, never whole":          {corev1.ConditionFalse, "", 0},
		"Volcano's, whole":                {corev1.ConditionTrue, "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				object := &volcano.PodGroup{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "u", CreationTimestamp: created}, Spec: volcano.PodGroupSpec{MinMember: 3},
					Status: volcano.PodGroupStatus{Conditions: []volcano.PodGroupCondition{{Type: volcano.PodGroupScheduled, Status: tc.status, Message: tc.message}}},
				}
				clients, _ := groupAPIs(bothGroupAPI, []runtime.Object{object}, nil)
				state := newState()
				followGroups(t, state, clients)
				if got := state.Job(train).Group.Start.Tasks; got != tc.want {
					t.Errorf("it started with %d tasks, want %d", got, tc.want)
				}
			})
		})
	}
}

// followGroups returns once the state has what there is, and the informers watch: this client does not tell a watch of what was before it.
func followGroups(t *testing.T, state *model.State, clients informer.Clients) {
	t.Helper()
	check(t, informer.Groups(t.Context(), state, clients))
	synctest.Wait()
}

func TestVolcanoQueues(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		object := &volcano.Queue{
			ObjectMeta: metav1.ObjectMeta{
				Name: "research", UID: "u", CreationTimestamp: created,
				Annotations: map[string]string{
					"volcano.sh/hierarchy": "root/eng/dev", "volcano.sh/hierarchy-weights": "1/2/8",
					"volcano.sh/nodegroup-resource-limits": `{"a100": {"cpu": "2"}}`, "caldera.dev/min-runtime": "30m",
					"caldera.dev/recent-use": `{"at": "2026-01-02T15:04:05Z", "average": {"cpu": "2500m", "nvidia.com/gpu": "3250m", "requests.cpu": "1"}}`,
				},
			},
			Spec: volcano.QueueSpec{
				Affinity: &volcano.Affinity{
					NodeGroupAffinity: &volcano.NodeGroupAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: []string{"a"}, PreferredDuringSchedulingIgnoredDuringExecution: []string{"b"},
					},
					NodeGroupAntiAffinity: &volcano.NodeGroupAntiAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: []string{"c"}, PreferredDuringSchedulingIgnoredDuringExecution: []string{"d"},
					},
				},
				Parent: "root", Weight: 3, Priority: 7, Reclaimable: new(false),
				Capability: corev1.ResourceList{"cpu": resource.MustParse("4"), "requests.cpu": resource.MustParse("1")},
				Guarantee:  volcano.Guarantee{Resource: corev1.ResourceList{"cpu": resource.MustParse("1")}},
				Deserved:   corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")},
			},
			Status: volcano.QueueStatus{State: volcano.QueueStateClosed},
		}
		clients, _ := groupAPIs(bothGroupAPI, []runtime.Object{object}, nil)
		state := newState()
		followGroups(t, state, clients)
		want := &model.Queue{
			Name: "research", UID: "u", Parent: "root", State: model.QueueShut, Created: created.Time, Object: object,
			Weight: 3, Priority: 7, Capability: modelresource.Vector{{Name: "cpu", Value: 4000}}, Guarantee: modelresource.Vector{{Name: "cpu", Value: 1000}},
			Deserved:  modelresource.Vector{{Name: "nvidia.com/gpu", Value: 8}},
			Hierarchy: []string{"root", "eng", "dev"}, HierarchyWeights: []float64{1, 2, 8},
			NodeGroups: &model.NodeGroups{
				Required: []string{"a"}, Preferred: []string{"b"}, AntiRequired: []string{"c"}, AntiPreferred: []string{"d"},
			},
			GroupLimits: model.GroupLimits{Of: map[string]modelresource.Vector{"a100": {{Name: "cpu", Value: 2000}}}},
			MinRuntime:  model.Say(30 * time.Minute),
			Recent: model.Recent{
				At:      time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC),
				Average: modelresource.Portion{{Name: "cpu", Value: 2500}, {Name: "nvidia.com/gpu", Value: 3.25}},
			},
		}
		if diff := cmp.Diff(want, state.Queue("research")); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
		check(t, clients.Volcano.SchedulingV1beta1().Queues().Delete(t.Context(), "research", metav1.DeleteOptions{}))
		synctest.Wait()
		if state.Queue("research") != nil {
			t.Error("the queue is deleted and still there")
		}
	})
}

// TestAllThatIsWrongWithAQueueIsTold: one mistake does not hide another.
func TestAllThatIsWrongWithAQueueIsTold(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		object := &volcano.Queue{
			ObjectMeta: metav1.ObjectMeta{Name: "q", Annotations: map[string]string{
				"volcano.sh/hierarchy": "root/q", "volcano.sh/nodegroup-resource-limits": "a100=2", "caldera.dev/min-runtime": "-1m",
				"caldera.dev/recent-use": "much", "caldera.dev/reservation": "soon",
			}},
			Spec: volcano.QueueSpec{Weight: -1, DequeueStrategy: "lifo"},
		}
		clients, _ := groupAPIs(bothGroupAPI, []runtime.Object{object}, nil)
		state := newState()
		followGroups(t, state, clients)
		problem := state.Queue("q").Problem
		for _, part := range []string{"volcano.sh/hierarchy", "volcano.sh/nodegroup-resource-limits", `caldera.dev/min-runtime is "-1m"`, `caldera.dev/recent-use is "much"`, `caldera.dev/reservation is "soon"`, "spec.weight is -1", `spec.dequeueStrategy is "lifo"`} {
			if !strings.Contains(problem, part) {
				t.Errorf("nobody hears of %s: %s", part, problem)
			}
		}
	})
}

func TestSchedulerPluginsPodGroups(t *testing.T) {
	listFirst(t)
	key := model.JobKey{Source: model.FromCoscheduling, Namespace: "ns", Name: "train"}
	for name, tc := range map[string]struct {
		annotations map[string]string
		spec        coscheduling.PodGroupSpec
		want        model.Group
	}{
		"every field that is read": {
			map[string]string{"scheduling.volcano.sh/queue-name": "research"},
			coscheduling.PodGroupSpec{
				MinMember: 4, ScheduleTimeoutSeconds: new(int32(10)), MinResources: corev1.ResourceList{"memory": resource.MustParse("1Ki")},
			},
			model.Group{
				MinMember: 4, Queue: "research", MinResources: modelresource.Vector{{Name: "memory", Value: 1024}},
				MinQuota: modelresource.Vector{{Name: "memory", Value: 1024}},
			},
		},
		"without the annotation it names no queue": {
			nil, coscheduling.PodGroupSpec{MinMember: 1}, model.Group{MinMember: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				object := &coscheduling.PodGroup{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "u", CreationTimestamp: created, Annotations: tc.annotations},
					Spec:       tc.spec,
				}
				clients, _ := groupAPIs(bothGroupAPI, nil, []runtime.Object{object})
				state := newState()
				followGroups(t, state, clients)
				tc.want.UID, tc.want.Created, tc.want.Object = "u", created.Time, object
				if diff := cmp.Diff(&tc.want, state.Job(key).Group); diff != "" {
					t.Errorf("(-want,+got)\n%s", diff)
				}
				check(t, clients.Coscheduling.SchedulingV1alpha1().PodGroups("ns").Delete(t.Context(), "train", metav1.DeleteOptions{}))
				synctest.Wait()
				if state.Job(key) != nil {
					t.Error("the PodGroup is deleted and its job still there")
				}
			})
		})
	}
}

func TestGroupAPIsAreWatchedOnceTheyAreServed(t *testing.T) {
	listFirst(t)
	for name, version := range map[string]string{
		"Volcano's definitions are applied later":           "scheduling.volcano.sh/v1beta1",
		"scheduler-plugins' definitions are applied later":  "scheduling.x-k8s.io/v1alpha1",
		"some other definition is applied, which helps not": "example.com/v1",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				object := metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "u"}
				clients, server := groupAPIs(nil, []runtime.Object{&volcano.PodGroup{ObjectMeta: object}}, []runtime.Object{&coscheduling.PodGroup{ObjectMeta: object}})
				state := newState()
				followGroups(t, state, clients)
				sources := func() map[model.Source]bool {
					found := map[model.Source]bool{}
					for job := range state.Snapshot().Jobs {
						found[job.Key.Source] = true
					}
					return found
				}
				if diff := cmp.Diff(map[model.Source]bool{}, sources()); diff != "" {
					t.Errorf("groups while nothing is served (-want,+got)\n%s", diff)
				}
				server.set(false, version)
				time.Sleep(20 * time.Second)
				want := map[string]map[model.Source]bool{
					"scheduling.volcano.sh/v1beta1": {model.FromVolcano: true}, "scheduling.x-k8s.io/v1alpha1": {model.FromCoscheduling: true}, "example.com/v1": {},
				}[version]
				if diff := cmp.Diff(want, sources()); diff != "" {
					t.Errorf("groups once %s is served (-want,+got)\n%s", version, diff)
				}
			})
		})
	}
}

// Until the API server has said whether there are PodGroups, jobs must not be told that theirs do not exist.
func TestGroupsWaitsForAnAPIServerThatCannotSay(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		object := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "u"}}
		clients, server := groupAPIs(bothGroupAPI[:1], []runtime.Object{object}, nil)
		server.set(true)
		state := newState()
		done := make(chan error, 1)
		go func() { done <- informer.Groups(t.Context(), state, clients) }()
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			t.Fatalf("groups are said to be known, with %v, while the API server fails", err)
		default:
		}
		server.set(false, bothGroupAPI...)
		check(t, <-done)
		if state.Job(train) == nil {
			t.Error("no job for the PodGroup though groups are said to be known")
		}
	})
}

func TestGroupsGivesUpWithItsContext(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		clients, _ := groupAPIs(bothGroupAPI, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := informer.Groups(ctx, newState(), clients); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v, want that the context was cancelled", err)
		}
	})
}

// TestSinceWhenAGroupIsWithoutRoom: what the scheduler before this one has written says how long the job has waited for room already.
func TestSinceWhenAGroupIsWithoutRoom(t *testing.T) {
	t.Parallel()
	for reason, want := range map[model.ReasonKind]struct{ waits, held bool }{
		model.NotEnoughResources: {waits: true},
		model.NotAdmitted:        {waits: true},
		model.QueueFull:          {waits: true},
		model.RoomReserved:       {waits: true, held: true},
		model.NotEnoughTasks:     {},
		model.QueueClosed:        {},
	} {
		for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
			g := informer.VolcanoGroup(&volcano.PodGroup{Status: volcano.PodGroupStatus{Conditions: []volcano.PodGroupCondition{
				{Type: volcano.PodGroupUnschedulableType, Status: status, Reason: string(reason), LastTransitionTime: created},
			}}})
			is := status == corev1.ConditionTrue
			if got := g.WithoutRoom.Equal(created.Time); got != (want.waits && is) || g.Held != (want.held && is) {
				t.Errorf("%s, %s: waits %t, held %t", reason, status, got, g.Held)
			}
		}
	}
}
