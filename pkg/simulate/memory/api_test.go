// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	clocktesting "k8s.io/utils/clock/testing"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory/fakes"
)

// noon is the time of the API in these tests.
var noon = time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)

// newAPI returns an API with some objects.
func newAPI(t *testing.T, objects ...runtime.Object) *memory.API {
	t.Helper()
	api, err := memory.New(clocktesting.NewFakePassiveClock(noon))
	check(t, err)
	for _, o := range objects {
		check(t, api.Add(o))
	}
	return api
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pod returns a pod of namespace team.
func pod(name string) *st.PodWrapper { return st.MakePod().Namespace("team").Name(name) }

// next takes the next event from a watch and describes it: "ADDED a".
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return fmt.Sprintf("%s %s", event.Type, event.Object.(metav1.Object).GetName())
	case <-t.Context().Done():
		t.Fatal("the test is over")
	}
	return ""
}

func watchPods(t *testing.T, api *memory.API, o metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := fakes.Kube(api).CoreV1().Pods("").Watch(t.Context(), o)
	check(t, err)
	t.Cleanup(w.Stop)
	return w
}

const live = "status.phase!=Succeeded,status.phase!=Failed"

func TestPodsAreListedByTheirFields(t *testing.T) {
	for name, tc := range map[string]struct {
		fields, labels string
		want           []string
	}{
		"all without a selector":     {want: []string{"bound", "done", "waits"}},
		"those that have not ended":  {fields: live, want: []string{"bound", "waits"}},
		"those of a node":            {fields: "spec.nodeName=n1", want: []string{"bound", "done"}},
		"those that have none":       {fields: "spec.nodeName=", want: []string{"waits"}},
		"one by its name":            {fields: "metadata.name=waits", want: []string{"waits"}},
		"those of another namespace": {fields: "metadata.namespace=other"},
		"those of a scheduler":       {fields: "spec.schedulerName=volcano", want: []string{"waits"}},
		"those with a label":         {labels: "app=web", want: []string{"done"}},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t, pod("waits").SchedulerName("volcano").Obj(), pod("bound").Node("n1").Phase(corev1.PodRunning).Obj(),
				pod("done").Node("n1").Label("app", "web").Phase(corev1.PodSucceeded).Obj())
			list, err := fakes.Kube(api).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: tc.fields, LabelSelector: tc.labels})
			check(t, err)
			var got []string
			for i := range list.Items {
				got = append(got, list.Items[i].Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestSelectorsThatCannotBeAreRefused(t *testing.T) {
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	for name, tc := range map[string]struct {
		resource schema.GroupVersionResource
		options  metav1.ListOptions
	}{
		"an unknown field":          {memory.Pods, metav1.ListOptions{FieldSelector: "spec.colour=red"}},
		"a field of another kind":   {nodes, metav1.ListOptions{FieldSelector: "status.phase=Running"}},
		"a malformed field":         {memory.Pods, metav1.ListOptions{FieldSelector: "status.phase"}},
		"malformed labels":          {memory.Pods, metav1.ListOptions{LabelSelector: "a=b=c"}},
		"a malformed begin, if any": {memory.Pods, metav1.ListOptions{ResourceVersion: "yesterday"}},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t)
			if _, err := api.Watch(tc.resource, "", tc.options); !apierrors.IsBadRequest(err) {
				t.Errorf("watching: %v, want a bad request", err)
			}
			if tc.options.ResourceVersion != "" {
				return
			}
			if _, err := api.List(tc.resource, corev1.SchemeGroupVersion.WithKind("Pod"), "", tc.options); !apierrors.IsBadRequest(err) {
				t.Errorf("listing: %v, want a bad request", err)
			}
		})
	}
}

func TestAPodThatFinishesLeavesOneWatchAndEntersTheOther(t *testing.T) {
	api := newAPI(t)
	pods := fakes.Kube(api).CoreV1().Pods("team")
	running, finished := watchPods(t, api, metav1.ListOptions{FieldSelector: live}), watchPods(t, api, metav1.ListOptions{FieldSelector: "status.phase=Succeeded"})
	p, err := pods.Create(t.Context(), pod("a").Phase(corev1.PodRunning).Obj(), metav1.CreateOptions{})
	check(t, err)
	p.Status.Phase = corev1.PodSucceeded
	_, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	check(t, err)
	check(t, pods.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	for _, want := range []string{"ADDED a", "DELETED a"} {
		if got := next(t, running); got != want {
			t.Errorf("the watch of live pods says %s, want %s", got, want)
		}
		if got := next(t, finished); got != want {
			t.Errorf("the watch of finished pods says %s, want %s", got, want)
		}
	}
}

func TestAWatchBeginsWhereItsListEnded(t *testing.T) {
	api := newAPI(t, pod("a").Obj())
	client := fakes.Kube(api).CoreV1().Pods("team")
	list, err := client.List(t.Context(), metav1.ListOptions{})
	check(t, err)
	_, err = client.Create(t.Context(), pod("b").Obj(), metav1.CreateOptions{})
	check(t, err)
	check(t, client.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	w := watchPods(t, api, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	for _, want := range []string{"ADDED b", "DELETED a"} {
		if got := next(t, w); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	api.Trim()
	if _, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion}); !apierrors.IsResourceExpired(err) {
		t.Errorf("watching the past after it was forgotten: %v, want that it has expired", err)
	}
}

func TestAWatchCanBeginWithWhatThereIs(t *testing.T) {
	api := newAPI(t, pod("a").Obj(), pod("b").Obj())
	w := watchPods(t, api, metav1.ListOptions{SendInitialEvents: new(true), AllowWatchBookmarks: true})
	for _, want := range []string{"ADDED a", "ADDED b", "BOOKMARK "} {
		if got := next(t, w); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWritersDoNotWaitForReaders(t *testing.T) {
	api := newAPI(t)
	w := watchPods(t, api, metav1.ListOptions{})
	const many = 2000
	for i := range many {
		check(t, api.Add(pod(fmt.Sprint(i)).Obj()))
	}
	for i := range many {
		if got, want := next(t, w), fmt.Sprintf("ADDED %d", i); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

func TestAWatchIsToldOnlyOfWhatItsSelectorMatches(t *testing.T) {
	api := newAPI(t)
	like := pod("any").Phase(corev1.PodPending).Obj()
	if _, watched := api.Told(memory.Pods, like); watched {
		t.Error("pods are watched before anybody does")
	}
	watchPods(t, api, metav1.ListOptions{FieldSelector: live})
	watchPods(t, api, metav1.ListOptions{FieldSelector: "status.phase=Succeeded"})
	check(t, api.Add(pod("a").Phase(corev1.PodPending).Obj()))
	after := api.Version()
	check(t, api.Add(pod("b").Phase(corev1.PodSucceeded).Obj()))
	if last, watched := api.Told(memory.Pods, like); last != after || !watched {
		t.Errorf("watches of live pods were told of version %d (watched: %t), want %d", last, watched, after)
	}
}

func TestObjectsGetWhatAServerGivesThem(t *testing.T) {
	api := newAPI(t)
	client := fakes.Kube(api).CoreV1().Pods("team")
	p := pod("").Obj()
	p.GenerateName = "worker-"
	first, err := client.Create(t.Context(), p, metav1.CreateOptions{})
	check(t, err)
	second, err := client.Create(t.Context(), p, metav1.CreateOptions{})
	check(t, err)
	if !strings.HasPrefix(first.Name, "worker-") || first.Name == second.Name || first.UID == "" || first.UID == second.UID {
		t.Errorf("pods are named %s and %s with UIDs %s and %s", first.Name, second.Name, first.UID, second.UID)
	}
	if first.ResourceVersion == second.ResourceVersion || !first.CreationTimestamp.Time.Equal(noon) {
		t.Errorf("versions are %s and %s, the creation time is %s", first.ResourceVersion, second.ResourceVersion, first.CreationTimestamp)
	}
	if _, err := client.Create(t.Context(), pod(first.Name).Obj(), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("creating a pod of the same name: %v, want that it exists", err)
	}
	if _, err := client.Get(t.Context(), "nobody", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("getting what is not there: %v", err)
	}
}

func TestWritesAreConditional(t *testing.T) {
	const merge = types.StrategicMergePatchType
	for name, tc := range map[string]struct {
		write func(t *testing.T, api *memory.API, p *corev1.Pod) error
		ok    func(error) bool
	}{
		"an update of the version that was read succeeds": {
			func(t *testing.T, api *memory.API, p *corev1.Pod) error {
				_, err := fakes.Kube(api).CoreV1().Pods("team").Update(t.Context(), p, metav1.UpdateOptions{})
				return err
			}, func(err error) bool { return err == nil },
		},
		"an update of an older version is a conflict": {
			func(t *testing.T, api *memory.API, p *corev1.Pod) error {
				p.ResourceVersion = "1"
				_, err := fakes.Kube(api).CoreV1().Pods("team").Update(t.Context(), p, metav1.UpdateOptions{})
				return err
			}, apierrors.IsConflict,
		},
		"a patch for the same UID succeeds": {
			func(t *testing.T, api *memory.API, p *corev1.Pod) error {
				patch := fmt.Sprintf(`{"metadata": {"uid": %q}, "status": {"message": "hello"}}`, p.UID)
				_, err := fakes.Kube(api).CoreV1().Pods("team").Patch(t.Context(), "a", merge, []byte(patch), metav1.PatchOptions{}, "status")
				return err
			}, func(err error) bool { return err == nil },
		},
		"a patch for another UID is a conflict": {
			func(t *testing.T, api *memory.API, _ *corev1.Pod) error {
				patch := `{"metadata": {"uid": "other"}, "status": {"message": "hello"}}`
				_, err := fakes.Kube(api).CoreV1().Pods("team").Patch(t.Context(), "a", merge, []byte(patch), metav1.PatchOptions{}, "status")
				return err
			}, apierrors.IsConflict,
		},
		"a deletion of another UID is a conflict": {
			func(t *testing.T, api *memory.API, _ *corev1.Pod) error {
				return fakes.Kube(api).CoreV1().Pods("team").Delete(t.Context(), "a", *metav1.NewPreconditionDeleteOptions("other"))
			}, apierrors.IsConflict,
		},
		"a deletion of another version is a conflict": {
			func(t *testing.T, api *memory.API, _ *corev1.Pod) error {
				return fakes.Kube(api).CoreV1().Pods("team").Delete(t.Context(), "a", *metav1.NewRVDeletionPrecondition("1"))
			}, apierrors.IsConflict,
		},
		"nothing can be applied": {
			func(t *testing.T, api *memory.API, _ *corev1.Pod) error {
				_, err := fakes.Kube(api).CoreV1().Pods("team").Patch(t.Context(), "a", types.ApplyPatchType, []byte("{}"), metav1.PatchOptions{})
				return err
			}, apierrors.IsMethodNotSupported,
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t, pod("first").Obj(), pod("a").Obj())
			p, err := fakes.Kube(api).CoreV1().Pods("team").Get(t.Context(), "a", metav1.GetOptions{})
			check(t, err)
			if err := tc.write(t, api, p); !tc.ok(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAWriteThatChangesNothingIsNoChange(t *testing.T) {
	api := newAPI(t, pod("a").Obj())
	p, err := fakes.Kube(api).CoreV1().Pods("team").Get(t.Context(), "a", metav1.GetOptions{})
	check(t, err)
	before := api.Version()
	_, err = fakes.Kube(api).CoreV1().Pods("team").Update(t.Context(), p, metav1.UpdateOptions{})
	check(t, err)
	if api.Version() != before {
		t.Errorf("the version went from %d to %d", before, api.Version())
	}
}

func TestGroupAPIsAreServed(t *testing.T) {
	api := newAPI(t, &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q"}},
		&volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "g"}, Spec: volcano.PodGroupSpec{MinMember: 2}})
	groups := fakes.Groups(api)
	for _, version := range []string{"scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"} {
		if _, err := groups.Discovery.ServerResourcesForGroupVersion(version); err != nil {
			t.Errorf("looking for %s: %v", version, err)
		}
	}
	if _, err := groups.Discovery.ServerResourcesForGroupVersion("batch/v1"); !apierrors.IsNotFound(err) {
		t.Errorf("looking for an API that is not served: %v", err)
	}
	client := groups.Volcano.SchedulingV1beta1()
	patch := []byte(`{"status": {"phase": "Running"}}`)
	_, err := client.PodGroups("team").Patch(t.Context(), "g", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	check(t, err)
	g, err := client.PodGroups("team").Get(t.Context(), "g", metav1.GetOptions{})
	check(t, err)
	if g.Status.Phase != volcano.PodGroupRunning || g.Spec.MinMember != 2 {
		t.Errorf("after a patch of the status the PodGroup is %+v", g)
	}
	list, err := client.Queues().List(t.Context(), metav1.ListOptions{})
	check(t, err)
	if len(list.Items) != 1 || list.Items[0].Name != "q" {
		t.Errorf("queues are %v", list.Items)
	}
}

func TestSomeObjectsAreDeletedByTheirLabels(t *testing.T) {
	api := newAPI(t, pod("a").Label("app", "web").Obj(), pod("b").Obj())
	client := fakes.Kube(api).CoreV1().Pods("team")
	check(t, client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=web"}))
	list, err := client.List(t.Context(), metav1.ListOptions{})
	check(t, err)
	if len(list.Items) != 1 || list.Items[0].Name != "b" {
		t.Errorf("left are %v", list.Items)
	}
}
