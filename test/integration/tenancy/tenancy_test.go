// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tenancy_test holds manifests/tenancy against a real API server: as a tenant, with the rights of a tenant.
package tenancy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const (
	system = "caldera-system"
	// tenant has the namespaces team-a and team-b.
	tenant = "alice"
)

// limits are those of the tests. Of team-a some are its own, of team-b none are.
var limits = map[string]string{
	"queues": "default", "queues.team-a": "research,default",
	"priorities": "", "priorities.team-a": "batch-high",
	"minMember": "4", "minMember.team-a": "16",
	"unpreemptable": "false", "unpreemptable.team-a": "true",
}

// cluster is an API server with the policies, and a tenant's client.
type cluster struct {
	*env.Env

	tenant dynamic.Interface
}

func open(t *testing.T) *cluster {
	t.Helper()
	e := env.New(t, env.NativeGroups(localcluster.Options{Nodes: 1, CRDDirs: []string{"../../../manifests/crds-optional"}}))
	files := []string{"deploy/namespace.yaml", "tenancy/policies.yaml", "tenancy/bindings.yaml", "tenancy/roles.yaml", "tenancy/limits.yaml"}
	if err := e.Install(t.Context(), manifests.All, files...); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(e.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: tenant, Groups: []string{"system:authenticated"}}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"team-a", "team-b"} {
		if _, err := e.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		// The role edit is made of these two. The controller that puts them together does not run here.
		for _, role := range []string{"system:aggregate-to-edit", "caldera-podgroups-edit"} {
			b := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: tenant}},
			}
			if _, err := e.Kube.RbacV1().RoleBindings(namespace).Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &cluster{e, client}
}

// limit sets the limits, and returns when they hold: when a queue that may not be named is refused.
func (c *cluster) limit(t *testing.T) {
	t.Helper()
	m, err := c.Kube.CoreV1().ConfigMaps(system).Get(t.Context(), "caldera-tenancy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.Data = limits
	if _, err := c.Kube.CoreV1().ConfigMaps(system).Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, probe := range []string{group("probe", "team-b", "queue: none"), group("probe", "team-b", "priorityClassName: none"), group("probe", "team-b", "minMember: 999")} {
		env.Eventually(t, time.Minute, func() string {
			if err := c.create(t, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); !apierrors.IsForbidden(err) {
				return fmt.Sprintf("the limits do not hold yet: %v", err)
			}
			return ""
		})
	}
}

// create has the tenant create an object.
func (c *cluster) create(t *testing.T, text string, o metav1.CreateOptions) error {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	_, err := c.tenant.Resource(resource).Namespace(object.GetNamespace()).Create(t.Context(), object, o)
	return err
}

// group is a PodGroup with some fields.
func group(name, namespace string, spec ...string) string {
	return fmt.Sprintf("apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s, namespace: %s}\nspec: {%s}\n", name, namespace, strings.Join(spec, ", "))
}

// annotated is a PodGroup, pod or other object with metadata.
func annotated(kind, name, namespace, metadata, spec string) string {
	return fmt.Sprintf("%s\nmetadata: {name: %s, namespace: %s, %s}\nspec: %s\n", kind, name, namespace, metadata, spec)
}

const (
	podGroup = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup"
	other    = "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup"
	native   = "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup"
	pod      = "apiVersion: v1\nkind: Pod"
	job      = "apiVersion: batch/v1\nkind: Job"
	set      = "apiVersion: apps/v1\nkind: StatefulSet"

	podSpec = "{schedulerName: volcano, containers: [{name: c, image: i}]}"
	jobSpec = "{template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}"
	setSpec = "{serviceName: s, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}"

	queueOf = `annotations: {scheduling.volcano.sh/queue-name: %s}`
)

// TestATenantIsHeldToItsLimits has a tenant ask for things that are beyond its limits in each way there is, and for as many that are not.
func TestATenantIsHeldToItsLimits(t *testing.T) {
	t.Parallel()
	c := open(t)
	protected := `annotations: {volcano.sh/preemptable: "false"}`
	requests := map[string]string{
		"a queue of its own":            group("p1", "team-a", "queue: research"),
		"the queue of all":              group("p2", "team-b", "queue: default"),
		"no queue":                      group("p3", "team-b", "minMember: 1"),
		"a queue by annotation":         annotated(pod, "p4", "team-a", fmt.Sprintf(queueOf, "research"), podSpec),
		"a pod that says nothing":       annotated(pod, "p5", "team-b", "labels: {}", podSpec),
		"a job with a queue":            annotated(job, "p6", "team-a", fmt.Sprintf(queueOf, "default"), jobSpec),
		"a priority class of its own":   group("p7", "team-a", "priorityClassName: batch-high"),
		"a gang as large as it may be":  group("p8", "team-a", "minMember: 16"),
		"a gang of scheduler-plugins":   annotated(other, "p9", "team-b", "labels: {}", "{minMember: 4}"),
		"protection":                    annotated(podGroup, "p10", "team-a", protected, "{minMember: 1}"),
		"saying that it may be evicted": annotated(pod, "p11", "team-b", `annotations: {volcano.sh/preemptable: "true"}`, podSpec),
		"Kubernetes' own gang":          annotated(native, "p13", "team-b", "labels: {}", "{schedulingPolicy: {gang: {minCount: 4}}}"),
		"a gang of a controller":        annotated(set, "p14", "team-b", `annotations: {scheduling.volcano.sh/group-min-member: "4"}`, setSpec),
		"a StatefulSet with a queue":    annotated(set, "p12", "team-a", fmt.Sprintf(queueOf, "research"), setSpec),
		"namespace team-b may not use queue research: name one of [default]":                                      group("r1", "team-b", "queue: research"),
		"namespace team-a may not use queue prod: name one of [research,default]":                                 group("r2", "team-a", "queue: prod"),
		"namespace team-b may not use queue prod":                                                                 annotated(pod, "r3", "team-b", fmt.Sprintf(queueOf, "prod"), podSpec),
		"namespace team-b may not use queue x":                                                                    annotated(job, "r4", "team-b", fmt.Sprintf(queueOf, "x"), jobSpec),
		"namespace team-b may not use queue other":                                                                annotated(set, "r5", "team-b", fmt.Sprintf(queueOf, "other"), setSpec),
		"namespace team-b may not use queue z":                                                                    annotated(other, "r6", "team-b", fmt.Sprintf(queueOf, "z"), "{minMember: 1}"),
		"namespace team-b may not use priority class batch-high: name one of []":                                  group("r7", "team-b", "priorityClassName: batch-high"),
		"namespace team-a may not use priority class system-cluster-critical":                                     group("r8", "team-a", "priorityClassName: system-cluster-critical"),
		"a gang of namespace team-a may start with 16 pods at most, not with 17":                                  group("r9", "team-a", "minMember: 17"),
		"a gang of namespace team-b may start with 4 pods at most, not with 5":                                    annotated(other, "r10", "team-b", "labels: {}", "{minMember: 5}"),
		`nothing of namespace team-b may keep itself from being evicted: leave out volcano.sh/preemptable: false`: annotated(podGroup, "r11", "team-b", protected, "{minMember: 1}"),
		"leave out volcano.sh/preemptable: 0, or":                                                                 annotated(pod, "r12", "team-b", `labels: {volcano.sh/preemptable: "0"}`, podSpec),
		"leave out volcano.sh/cooldown-time: 1000h, or":                                                           annotated(pod, "r13", "team-b", `labels: {volcano.sh/cooldown-time: 1000h}`, podSpec),
		"leave out volcano.sh/jdb-min-available: 100%, or":                                                        annotated(podGroup, "r14", "team-b", `annotations: {volcano.sh/jdb-min-available: 100%}`, "{minMember: 1}"),
		"a gang of namespace team-b may start with 4 pods at most, not with 6":                                    group("r15", "team-b", "minMember: 1", "minTaskMember: {a: 3, b: 3}"),
		"a gang of namespace team-b may start with 4 pods at most, not with 7":                                    annotated(set, "r16", "team-b", `annotations: {scheduling.volcano.sh/group-min-member: "7"}`, setSpec),
		"a gang of namespace team-b may start with 4 pods at most, not with 8":                                    annotated(native, "r17", "team-b", "labels: {}", "{schedulingPolicy: {gang: {minCount: 8}}}"),
	}
	c.limit(t)
	passed, refused := 0, 0
	for what, text := range requests {
		err := c.create(t, text, metav1.CreateOptions{})
		if strings.Contains(text, "{name: p") {
			passed++
			if err != nil {
				t.Errorf("%s is refused: %v", what, err)
			}
			continue
		}
		refused++
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'caldera-") || !strings.Contains(err.Error(), what) {
			t.Errorf("want it refused with %q:\n%s%v", what, text, err)
		}
	}
	if passed != 14 || refused != 17 {
		t.Errorf("%d requests pass and %d are refused, want 14 and 17", passed, refused)
	}
}

// TestWhatIsThereStays: limits that come later do not keep anybody from changing what is there, as long as it asks for no more; and who has them lifted may.
func TestWhatIsThereStays(t *testing.T) {
	t.Parallel()
	c := open(t)
	old := annotated(podGroup, "old", "team-b", `annotations: {volcano.sh/cooldown-time: 1h}`, "{queue: prod, minMember: 8, priorityClassName: high}")
	if err := c.create(t, old, metav1.CreateOptions{}); err != nil {
		t.Fatalf("without limits it is refused: %v", err)
	}
	c.limit(t)
	groups := c.Volcano.SchedulingV1beta1().PodGroups("team-b")
	patch := func(text string) error {
		_, err := groups.Patch(t.Context(), "old", types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	for _, smaller := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"minMember":6}}`, `{"spec":{"priorityClassName":""}}`} {
		if err := patch(smaller); err != nil {
			t.Errorf("%s: %v", smaller, err)
		}
	}
	for _, more := range []string{
		`{"spec":{"minMember":9}}`, `{"spec":{"priorityClassName":"high"}}`, `{"spec":{"queue":"another"}}`, `{"metadata":{"annotations":{"volcano.sh/preemptable":"false"}}}`,
		`{"metadata":{"annotations":{"volcano.sh/cooldown-time":"2h"}}}`,
	} {
		if err := patch(more); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want it refused", more, err)
		}
	}
	if err := c.Kube.CoreV1().ConfigMaps(system).Delete(t.Context(), "caldera-tenancy", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, time.Minute, func() string {
		if err := patch(`{"spec":{"queue":"another"}}`); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestLimitsThatAreMistypedAreRefused as a whole: what was there before holds on.
func TestLimitsThatAreMistypedAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	maps := c.Kube.CoreV1().ConfigMaps(system)
	set := func(key, value string) error {
		patch := fmt.Sprintf(`{"data":{%q:%q}}`, key, value)
		_, err := maps.Patch(t.Context(), "caldera-tenancy", types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	env.Eventually(t, time.Minute, func() string {
		if set("queue", "a") == nil {
			return "the policies are not in force yet"
		}
		return ""
	})
	for _, tc := range []struct{ key, value, says string }{
		{"queue.team-a", "a", "there is no limit queue.team-a"},
		{"queues.", "a", "there is no limit queues."},
		{"queues.team-a", "a, b", `queues.team-a cannot be "a, b"`},
		{"priorities", ",", `priorities cannot be ","`},
		{"minMember.team-a", "ten", `minMember.team-a cannot be "ten"`},
		{"minMember", "0", `minMember cannot be "0"`},
		{"minMember", "-1", `minMember cannot be "-1"`},
		{"unpreemptable", "no", `unpreemptable cannot be "no"`},
	} {
		if err := set(tc.key, tc.value); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %q is answered with %v, want %s", tc.key, tc.value, err, tc.says)
		}
	}
	mistaken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "caldera-tenancy"}, Data: map[string]string{"minMember": "ten"}}
	if err := maps.Delete(t.Context(), mistaken.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(t.Context(), mistaken, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), `minMember cannot be "ten"`) {
		t.Errorf("created anew it is answered with %v", err)
	}
	mistaken.Data = nil
	if _, err := maps.Create(t.Context(), mistaken, metav1.CreateOptions{}); err != nil {
		t.Errorf("without limits it is answered with %v", err)
	}
	for key, value := range limits {
		if err := set(key, value); err != nil {
			t.Errorf("%s: %q is refused: %v", key, value, err)
		}
	}
}
