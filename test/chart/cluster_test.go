// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	helmkube "helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

// controlPlane is a real one, and Helm for it.
type controlPlane struct {
	*localcluster.Cluster
	kube    kubernetes.Interface
	dynamic dynamic.Interface
}

// start starts a control plane that ends with the test, with the release's namespace.
func start(t *testing.T, o localcluster.Options) *controlPlane {
	t.Helper()
	o.Binary, o.NoDefaultCRDs = program(t, "CALDERA_LOCALCLUSTER"), true
	started, err := localcluster.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			t.Error(err)
		}
	})
	r := &controlPlane{Cluster: started}
	if r.kube, err = kubernetes.NewForConfig(started.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	if r.dynamic, err = dynamic.NewForConfig(started.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if _, err := r.kube.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return r
}

// getter is how Helm reaches the cluster, anew each time: what is served changes.
func (r *controlPlane) getter() *genericclioptions.ConfigFlags {
	ns := namespace
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &r.Kubeconfig, &ns
	flags.WrapConfigFn = func(*rest.Config) *rest.Config { return r.RESTConfig() }
	return flags
}

func (r *controlPlane) helm(t *testing.T) *action.Configuration {
	t.Helper()
	c := action.NewConfiguration()
	if err := c.Init(r.getter(), namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	return c
}

const timeout = time.Minute

func (r *controlPlane) tryInstall(t *testing.T, with string) (*releasev1.Release, error) {
	t.Helper()
	install := action.NewInstall(r.helm(t))
	install.ReleaseName, install.Namespace, install.Timeout, install.WaitStrategy = release, namespace, timeout, helmkube.HookOnlyStrategy
	done, err := install.Run(load(t), values(t, with))
	if err != nil {
		return nil, err
	}
	return done.(*releasev1.Release), nil
}

func (r *controlPlane) install(t *testing.T, with string) *releasev1.Release {
	t.Helper()
	done, err := r.tryInstall(t, with)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func (r *controlPlane) upgrade(t *testing.T, with string) *releasev1.Release {
	t.Helper()
	upgrade := action.NewUpgrade(r.helm(t))
	upgrade.Namespace, upgrade.Timeout, upgrade.WaitStrategy = namespace, timeout, helmkube.HookOnlyStrategy
	done, err := upgrade.Run(release, load(t), values(t, with))
	if err != nil {
		t.Fatal(err)
	}
	return done.(*releasev1.Release)
}

func (r *controlPlane) rollback(t *testing.T, to int) {
	t.Helper()
	rollback := action.NewRollback(r.helm(t))
	rollback.Version, rollback.Timeout, rollback.WaitStrategy, rollback.ServerSideApply = to, timeout, helmkube.HookOnlyStrategy, "auto"
	if err := rollback.Run(release); err != nil {
		t.Fatal(err)
	}
}

func (r *controlPlane) uninstall(t *testing.T) {
	t.Helper()
	uninstall := action.NewUninstall(r.helm(t))
	uninstall.Timeout, uninstall.WaitStrategy = timeout, helmkube.HookOnlyStrategy
	if _, err := uninstall.Run(release); err != nil {
		t.Fatal(err)
	}
}

// get reads the object of that name; nil if there is none.
func (r *controlPlane) get(t *testing.T, of *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	mapper, err := r.getter().ToRESTMapper()
	if err != nil {
		t.Fatal(err)
	}
	mapping, err := mapper.RESTMapping(of.GroupVersionKind().GroupKind(), of.GroupVersionKind().Version)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	live, err := r.dynamic.Resource(mapping.Resource).Namespace(of.GetNamespace()).Get(t.Context(), of.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// has checks that the cluster has each object of a release, with each field that the chart gives it.
func (r *controlPlane) has(t *testing.T, of *releasev1.Release) {
	t.Helper()
	all := objects(t, of)
	if len(all) < 15 {
		t.Errorf("the release has %d objects, want what there is in manifests", len(all))
	}
	for name, want := range all {
		live := r.get(t, want)
		if live == nil {
			t.Errorf("no %s", name)
			continue
		}
		for _, hook := range []string{"helm.sh/hook", "helm.sh/hook-delete-policy"} {
			unstructured.RemoveNestedField(want.Object, "metadata", "annotations", hook)
			unstructured.RemoveNestedField(live.Object, "metadata", "annotations", hook)
		}
		for _, missing := range lacks("", live.Object, want.Object) {
			t.Errorf("%s: %s", name, missing)
		}
	}
}

// lacks lists the fields that an object has not, or otherwise.
func lacks(path string, live, want any) []string {
	switch w := want.(type) {
	case map[string]any:
		l, _ := live.(map[string]any)
		var missing []string
		for name, part := range w {
			missing = append(missing, lacks(path+"."+name, l[name], part)...)
		}
		return missing
	case []any:
		l, _ := live.([]any)
		if len(l) != len(w) {
			return []string{fmt.Sprintf("%s has %d elements, want %d", path, len(l), len(w))}
		}
		var missing []string
		for i, part := range w {
			missing = append(missing, lacks(fmt.Sprintf("%s[%d]", path, i), l[i], part)...)
		}
		return missing
	}
	if fmt.Sprint(live) != fmt.Sprint(want) {
		return []string{fmt.Sprintf("%s is %v, want %v", path, live, want)}
	}
	return nil
}

// named is an object that is only to be looked for.
func named(gvk schema.GroupVersionKind, ns, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

var (
	queueKind       = schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "Queue"}
	definitionKind  = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	clusterRoleKind = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	configMapKind   = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	deploymentKind  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// weight is that of a queue; 0 if there is no such queue.
func (r *controlPlane) weight(t *testing.T, queue string) int64 {
	t.Helper()
	q := r.get(t, named(queueKind, "", queue))
	if q == nil {
		return 0
	}
	weight, _, err := unstructured.NestedInt64(q.Object, "spec", "weight")
	if err != nil {
		t.Fatal(err)
	}
	return weight
}

// TestAReleaseComesChangesAndGoes on a real API server: each object of each revision is there with all of its fields, and what a revision lacks is gone.
// Definitions and queues stay, with what users have made of them.
func TestAReleaseComesChangesAndGoes(t *testing.T) {
	t.Parallel()
	r := start(t, localcluster.Options{})
	const first = "queues: [{name: research, spec: {weight: 4}}]"
	one := r.install(t, first)
	r.has(t, one)
	research := r.get(t, named(queueKind, "", "research"))
	if research == nil || r.weight(t, "research") != 4 {
		t.Fatal("a first installation creates no queues")
	}

	two := r.upgrade(t, first) // Nothing changes but that queues are objects like any other.
	r.has(t, two)
	const more = `
queues: [{name: research, spec: {weight: 8}}, {name: batch}]
replicas: 3
mode: instead
volcanoConf: "actions: \"enqueue, allocate\"\ntiers:\n- plugins: [{name: gang}]\n"
rbac: {optional: {queueGate: true}}
podDisruptionBudget: {enabled: true}
visibility: {port: 11270}
`
	optional, conf := named(clusterRoleKind, "", "caldera-scheduler-queue-gate"), named(configMapKind, namespace, "caldera-volcano-conf")
	three := r.upgrade(t, more)
	r.has(t, three)
	if r.get(t, optional) == nil || r.get(t, conf) == nil || r.weight(t, "research") != 8 || r.weight(t, "batch") != 1 {
		t.Error("an upgrade does not bring what its values say")
	}

	// The first revision created its queue by a hook, which a rollback does not run.
	r.rollback(t, one.Version)
	if r.get(t, optional) != nil || r.weight(t, "research") != 8 {
		t.Errorf("after a rollback to the first revision research has the weight %d, want that of the third, and no optional role", r.weight(t, "research"))
	}
	r.rollback(t, two.Version)
	r.has(t, two)
	if r.get(t, optional) != nil || r.get(t, conf) != nil {
		t.Error("what the third revision brought is there after a rollback to the second")
	}
	if r.weight(t, "batch") != 1 {
		t.Error("a rollback deletes a queue")
	}
	if now := r.get(t, research); now == nil || now.GetUID() != research.GetUID() {
		t.Error("queue research is not the one of the first revision")
	}

	r.uninstall(t)
	for name, want := range objects(t, two) {
		kept := want.GetKind() == queueKind.Kind || want.GetKind() == definitionKind.Kind
		if is := r.stays(t, want, kept); is != kept {
			t.Errorf("%s: there is %t after uninstall, want %t", name, is, kept)
		}
	}

	// What stayed is this release's again.
	again := r.install(t, "queues: [{name: research, spec: {weight: 2}}]")
	r.has(t, again)
	if now := r.get(t, research); now == nil || now.GetUID() != research.GetUID() || r.weight(t, "research") != 2 {
		t.Error("queue research is not the one of the release before, with the weight of this one")
	}
}

// stays says whether there is such an object. For one that is not to be there it gives those who delete a moment.
func (r *controlPlane) stays(t *testing.T, u *unstructured.Unstructured, wanted bool) bool {
	t.Helper()
	if wanted {
		return r.get(t, u) != nil
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return r.get(t, u) == nil, nil })
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return err != nil
}

// TestVolcanosDefinitionsStay as they are, whatever happens to the release: its controllers rely on PodGroups without a subresource for their status.
func TestVolcanosDefinitionsStay(t *testing.T) {
	t.Parallel()
	r := start(t, localcluster.Options{NoControllers: true})
	definitions := r.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	var theirs []*unstructured.Unstructured
	for name, u := range kustomized(t) {
		if u.GetKind() != definitionKind.Kind {
			continue
		}
		if strings.Contains(name, "podgroups") {
			versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
			delete(versions[0].(map[string]any), "subresources")
			if err := unstructured.SetNestedSlice(u.Object, versions, "spec", "versions"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := definitions.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		theirs = append(theirs, u)
	}
	if len(theirs) != 2 {
		t.Fatalf("%d definitions, want 2", len(theirs))
	}
	before := r.served(t, theirs)
	same := func(when string) {
		t.Helper()
		for i, u := range theirs {
			if now := r.get(t, u); now == nil || now.GetUID() != before[i].GetUID() || now.GetGeneration() != before[i].GetGeneration() || !maps.Equal(now.GetAnnotations(), before[i].GetAnnotations()) {
				t.Errorf("%s: %s has changed: generation %d, annotations %q", when, id(u), now.GetGeneration(), now.GetAnnotations())
			}
		}
	}

	_, err := r.tryInstall(t, "crds: {install: always}")
	if err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("crds.install=always: got %v, want that the definitions are somebody else's", err)
	}
	same("crds.install=always")

	const queues = "queues: [{name: research, spec: {weight: 4}}]"
	r.has(t, r.install(t, queues))
	same("install")
	r.has(t, r.upgrade(t, queues+"\nreplicas: 1"))
	same("upgrade")
	if d := r.get(t, named(deploymentKind, namespace, "caldera-scheduler")); d == nil {
		t.Error("no Deployment")
	}
	r.rollback(t, 1)
	same("rollback")
	r.uninstall(t)
	same("uninstall")
	if r.weight(t, "research") != 4 {
		t.Error("the queue went with the release")
	}
}

// served returns definitions once they are served.
func (r *controlPlane) served(t *testing.T, of []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	all := make([]*unstructured.Unstructured, len(of))
	for i, u := range of {
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
			all[i] = r.get(t, u)
			conditions, _, err := unstructured.NestedSlice(all[i].Object, "status", "conditions")
			for _, c := range conditions {
				if is := c.(map[string]any); is["type"] == "Established" && is["status"] == "True" {
					return true, nil
				}
			}
			return false, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
