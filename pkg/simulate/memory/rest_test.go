// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// client returns a real client of an API.
func client(t *testing.T, api *memory.API) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(memory.Config(api.Server()))
	check(t, err)
	return c
}

func TestARealClientReadsAndWrites(t *testing.T) {
	api := newAPI(t, pod("a").Label("app", "web").Obj(), pod("b").Obj())
	pods := client(t, api).CoreV1().Pods("team")
	ctx := t.Context()
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	check(t, err)
	if len(list.Items) != 1 || list.Items[0].Name != "a" || list.ResourceVersion != fmt.Sprint(api.Version()) {
		t.Errorf("listed %v at version %s", list.Items, list.ResourceVersion)
	}
	made, err := pods.Create(ctx, pod("c").Obj(), metav1.CreateOptions{})
	check(t, err)
	if made.UID == "" || made.ResourceVersion == "" {
		t.Errorf("created %+v", made.ObjectMeta)
	}
	if _, err := pods.Create(ctx, pod("c").Obj(), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("creating it again: %v", err)
	}
	made.Labels = map[string]string{"x": "y"}
	made.Status.Phase = corev1.PodRunning
	updated, err := pods.Update(ctx, made, metav1.UpdateOptions{})
	check(t, err)
	if updated.Labels["x"] != "y" || updated.Status.Phase == corev1.PodRunning {
		t.Errorf("an update changes labels, and no status: %v, %s", updated.Labels, updated.Status.Phase)
	}
	if _, err := pods.UpdateStatus(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an older version: %v", err)
	}
	updated.Labels, updated.Status.Phase = nil, corev1.PodRunning
	updated, err = pods.UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	check(t, err)
	if updated.Labels["x"] != "y" || updated.Status.Phase != corev1.PodRunning {
		t.Errorf("an update of the status changes that, and no labels: %v, %s", updated.Labels, updated.Status.Phase)
	}
	check(t, pods.Delete(ctx, "c", metav1.DeleteOptions{}))
	if _, err := pods.Get(ctx, "c", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was deleted is there: %v", err)
	}
}

func TestPatchesOfEachKind(t *testing.T) {
	api := newAPI(t, pod("a").Container("image").Obj())
	pods := client(t, api).CoreV1().Pods("team")
	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType:          `{"metadata":{"labels":{"merge":"yes"}},"status":{"phase":"Running"}}`,
		types.StrategicMergePatchType: `{"metadata":{"labels":{"strategic":"yes"}}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/metadata/annotations","value":{"json":"yes"}}]`,
	} {
		if _, err := pods.Patch(t.Context(), "a", kind, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	p, err := pods.Patch(t.Context(), "a", types.StrategicMergePatchType, []byte(
		`{"metadata":{"labels":{"merge":"no"}},"status":{"conditions":[{"type":"PodScheduled","status":"False"}]}}`), metav1.PatchOptions{}, "status")
	check(t, err)
	if p.Labels["merge"] != "yes" || p.Labels["strategic"] != "yes" || p.Annotations["json"] != "yes" || p.Status.Phase == corev1.PodRunning ||
		len(p.Status.Conditions) != 1 {
		t.Errorf("after all patches it is %+v", p)
	}
	wrong := []byte(`{"metadata":{"uid":"other"},"status":{"phase":"Failed"}}`)
	if _, err := pods.Patch(t.Context(), "a", types.MergePatchType, wrong, metav1.PatchOptions{}, "status"); !apierrors.IsConflict(err) {
		t.Errorf("a patch of another pod of the name: %v", err)
	}
}

func TestARealClientBindsAndEvicts(t *testing.T) {
	api := newAPI(t, pod("a").UID("u").Obj())
	pods := client(t, api).CoreV1().Pods("team")
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", UID: "u"}, Target: corev1.ObjectReference{Name: "node"}}
	check(t, pods.Bind(t.Context(), binding, metav1.CreateOptions{}))
	if err := pods.Bind(t.Context(), binding, metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("binding it again: %v", err)
	}
	check(t, pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"}}))
	if got := api.Disruptions(0); len(got) != 1 || got[0].Name != "a" || got[0].Spec.NodeName != "node" {
		t.Errorf("evicted %v", got)
	}
}

func TestWhatIsCreatedIsAdmittedFirst(t *testing.T) {
	server := newAPI(t).Server()
	server.Admit = func(o scenario.Object) error {
		if o.GetName() == "bad" {
			return errors.New("no such pods here")
		}
		o.SetAnnotations(map[string]string{"seen": o.GetName()})
		return nil
	}
	c, err := kubernetes.NewForConfig(memory.Config(server))
	check(t, err)
	pods := c.CoreV1().Pods("team")
	created, err := pods.Create(t.Context(), pod("a").Obj(), metav1.CreateOptions{})
	check(t, err)
	if created.Annotations["seen"] != "a" {
		t.Errorf("it was created with the annotations %v", created.Annotations)
	}
	if _, err := pods.Create(t.Context(), pod("bad").Obj(), metav1.CreateOptions{}); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "no such pods here") {
		t.Errorf("creating what is not admitted: %v", err)
	}
	if _, err := pods.Get(t.Context(), "bad", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading what was not admitted: %v", err)
	}
}

func TestGroupsAreServedToRealClients(t *testing.T) {
	api := newAPI(t, &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "g"}, Spec: volcano.PodGroupSpec{MinMember: 2}})
	config := memory.Config(api.Server())
	clients, err := informer.NewClients(config)
	check(t, err)
	if _, err := clients.Discovery.ServerResourcesForGroupVersion(volcano.SchemeGroupVersion.String()); err != nil {
		t.Error(err)
	}
	if _, err := clients.Discovery.ServerResourcesForGroupVersion("batch/v1"); !apierrors.IsNotFound(err) {
		t.Errorf("looking for what is not served: %v", err)
	}
	groups, err := volcanoclient.NewForConfig(config)
	check(t, err)
	g, err := groups.SchedulingV1beta1().PodGroups("team").Get(t.Context(), "g", metav1.GetOptions{})
	check(t, err)
	if g.Spec.MinMember != 2 {
		t.Errorf("got %+v", g)
	}
}

// TestARealInformerFollows: what an informer has becomes what the API has, whatever the past it asks for.
func TestARealInformerFollows(t *testing.T) {
	api := newAPI(t, pod("a").Obj())
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactory(client(t, api), 0)
	lister := factory.Core().V1().Pods().Lister()
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	check(t, api.Add(pod("b").Obj()))
	check(t, api.Remove(memory.Pods, "team", "a"))
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, there := lister.Pods("team").Get("b")
		_, gone := lister.Pods("team").Get("a")
		if there == nil && apierrors.IsNotFound(gone) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the informer has not caught up: b: %v, a: %v", there, gone)
		}
	}
	cancel()
	factory.Shutdown()
}

func TestARequestThatIsGivenUpIsNotCarriedOut(t *testing.T) {
	api := newAPI(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := api.Version()
	if _, err := client(t, api).CoreV1().Pods("team").Create(ctx, pod("a").Obj(), metav1.CreateOptions{}); err == nil || api.Version() != before {
		t.Errorf("the error is %v, the version %d, want %d", err, api.Version(), before)
	}
}
