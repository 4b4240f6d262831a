// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// soon is what those may take, on a slow machine, whom nothing but work that cannot run could keep waiting.
const soon = 30 * time.Second

// replicas returns equal pods without a PodGroup, as a Deployment makes them, after a change of each.
func replicas(name, cpu string, n int, change func(i int, p *corev1.Pod)) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = env.Pod(fmt.Sprintf("%s-%d", name, i), cpu)
		pods[i].Labels = map[string]string{env.GroupLabel: name}
		change(i, pods[i])
	}
	return pods
}

func unchanged(int, *corev1.Pod) {}

// comeAndGo creates gangs of 4 and single pods in turn, each of which runs for a moment, and checks that they are bound soon.
func comeAndGo(t *testing.T, e *env.Env, name string, rounds int, change func(i int, p *corev1.Pod)) {
	t.Helper()
	var longest time.Duration
	for round := range rounds {
		began := time.Now()
		shortLived := func(i int, p *corev1.Pod) {
			p.Annotations = labels.Merge(p.Annotations, map[string]string{"localcluster.caldera.dev/run-for": "200ms"})
			change(i, p)
		}
		gang := env.Gang{Name: fmt.Sprintf("%s-gang-%d", name, round), Min: 4, Size: 4, CPU: "1", Pod: shortLived}
		single := fmt.Sprintf("%s-single-%d", name, round)
		e.Create(t, gang)
		e.CreatePods(t, replicas(single, "1", 2, shortLived)...)
		env.Eventually(t, soon, e.AllBound(t, gang.Name, gang.Size))
		env.Eventually(t, soon, e.AllBound(t, single, 2))
		longest = max(longest, time.Since(began))
	}
	t.Logf("%d gangs and %d single pods were bound, each round within %s", rounds, 2*rounds, longest)
}

// TestNobodyWaitsForPodsWhoseResourceClaimIsMissing: a typo in a Deployment. Upstream keeps its pods out of the scheduling queue, where
// a turn that waits for them would wait for ever. They start when the claim is there.
func TestNobodyWaitsForPodsWhoseResourceClaimIsMissing(t *testing.T) { //nolint:tparallel // what is tried on one cluster comes one after the other
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 4, Shapes: []string{"cpu=32,memory=64Gi"}})
	e.StartScheduler(t)
	createDevices(t, e)
	for _, n := range []int{2, 200} {
		t.Run(fmt.Sprintf("%d replicas", n), func(t *testing.T) {
			name := fmt.Sprintf("web-%d", n)
			naming := func(_ int, p *corev1.Pod) {
				p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: new(name)}}
				p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
			}
			e.CreatePods(t, replicas(name, "100m", n, naming)...)
			e.Create(t, env.Gang{Name: name + "-gang", Min: 2, Size: 2, CPU: "1", Pod: naming})
			comeAndGo(t, e, name, 3, unchanged)
			if problem := e.AllBound(t, name, 0)(); problem != "" {
				t.Fatal(problem)
			}
			env.Eventually(t, soon, e.Waits(t, name+"-gang", model.SchedulingGated))

			if n > 2 {
				// So many pods that share one claim are in each other's way when it comes, with any scheduler.
				e.Delete(t, name)
				comeAndGo(t, e, name+"-after", 3, unchanged)
				return
			}
			createResourceClaim(t, e, name)
			env.Eventually(t, soon, e.AllBound(t, name+"-gang", 2))
			env.Eventually(t, soon, e.AllBound(t, name, n))
		})
	}
}

const deviceDriver = "devices.example.com"

// createDevices creates devices that every node can reach, and their class.
func createDevices(t *testing.T, e *env.Env) {
	t.Helper()
	_, err := e.Kube.ResourceV1().DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: deviceDriver},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", deviceDriver)},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Kube.ResourceV1().ResourceSlices().Create(t.Context(), &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "devices"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: deviceDriver, AllNodes: new(true), Pool: resourcev1.ResourcePool{Name: "devices", ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "a"}, {Name: "b"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func createResourceClaim(t *testing.T, e *env.Env, name string) {
	t.Helper()
	_, err := e.Kube.ResourceV1().ResourceClaims(env.Namespace).Create(t.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "one", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: deviceDriver, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			},
		}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNobodyWaitsForPodsWhoseVolumeClaimIsMissing: each of 50 pods names a claim of its own, and one of them comes.
func TestNobodyWaitsForPodsWhoseVolumeClaimIsMissing(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 4, Shapes: []string{"cpu=32,memory=64Gi"}})
	e.StartScheduler(t)
	_, err := e.Kube.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: "kubernetes.io/no-provisioner",
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.CreatePods(t, replicas("stateful", "100m", 50, func(_ int, p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.Name},
		}}}
	})...)
	comeAndGo(t, e, "others", 8, unchanged)
	env.Eventually(t, soon, podSays(t, e, "stateful", corev1.PodReasonUnschedulable, "persistentvolumeclaim"))

	createVolume(t, e, 0, 0)
	createClaim(t, e, "stateful-7")
	env.Eventually(t, soon, e.AllBound(t, "stateful", 1))
	if p := e.Members(t, "stateful"); p[indexOf(p, "stateful-7")].Spec.NodeName == "" {
		t.Error("a pod was bound, but not the one whose claim is there")
	}
}

func indexOf(pods []*corev1.Pod, name string) int {
	for i, p := range pods {
		if p.Name == name {
			return i
		}
	}
	return 0
}

// TestNobodyWaitsForGangsThatSelectFullNodes: each of 50 gangs has a label of its own, as the pods of Jobs have.
func TestNobodyWaitsForGangsThatSelectFullNodes(t *testing.T) {
	t.Parallel()
	const gangs, size = 50, 4
	e := env.New(t, localcluster.Options{Shapes: []string{
		"name=full,count=2,cpu=4,memory=64Gi,label:pool=full", "name=room,count=4,cpu=16,memory=64Gi,label:pool=room",
	}})
	e.StartSchedulerWith(t, everyoneIsAdmitted)
	in := func(pool string) func(int, *corev1.Pod) {
		return func(_ int, p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": pool} }
	}
	e.CreatePods(t, replicas("filler", "3", 2, in("full"))...)
	env.Eventually(t, soon, e.AllBound(t, "filler", 2))
	name := func(i int) string { return fmt.Sprintf("hopeless-%d", i) }
	for i := range gangs {
		e.Create(t, env.Gang{Name: name(i), Min: size, Size: size, CPU: "1", Pod: func(k int, p *corev1.Pod) {
			in("full")(k, p)
			p.Labels["job-name"] = name(i)
		}})
	}
	comeAndGo(t, e, "others", 8, in("room"))
	env.Eventually(t, soon, e.Waits(t, name(gangs-1), model.NotEnoughResources))

	// There is room for one now, and one pod more.
	e.DeletePods(t.Context(), t, e.Members(t, "filler")[0])
	oneStarted := func() string {
		whole := 0
		for i := range gangs {
			switch bound, _ := e.Bound(t, name(i)); bound {
			case 0:
			case size:
				whole++
			default:
				return fmt.Sprintf("%d of %d pods of gang %s have nodes", bound, size, name(i))
			}
		}
		if whole != 1 {
			return fmt.Sprintf("%d gangs run, want 1", whole)
		}
		return ""
	}
	env.Eventually(t, soon, oneStarted)
	env.Consistently(t, time.Second, oneStarted)
}

// TestWhoIsFirstDoesNotWaitForTheBindsOfAllOthers: the scheduler may send few requests, and 1,200 pods find room sooner than they can be bound. A
// job that comes then and goes before all others does not wait until all of them are.
func TestWhoIsFirstDoesNotWaitForTheBindsOfAllOthers(t *testing.T) {
	t.Parallel()
	const jobs, size, first = 12, 100, 4
	e := env.New(t, localcluster.Options{Nodes: 12, Shapes: []string{"cpu=32,memory=64Gi"}})
	e.PriorityClass(t, "urgent", 1000)
	var early []env.Gang
	for i := range jobs {
		early = append(early, env.Gang{Name: fmt.Sprintf("early-%d", i), Min: size, Size: size, CPU: "100m"})
		e.Create(t, early[i])
	}
	bound := func() (n int) {
		for _, g := range early {
			of, _ := e.Bound(t, g.Name)
			n += of
		}
		return n
	}
	e.StartSchedulerWith(t, "", func(c *schedulerconfig.KubeSchedulerConfiguration) {
		c.ClientConnection.QPS, c.ClientConnection.Burst = 200, 1
	})
	env.Eventually(t, soon, func() string {
		if bound() == 0 {
			return "no pod is bound"
		}
		return ""
	})
	urgent := env.Gang{Name: "urgent", Min: first, Size: first, CPU: "100m", Group: func(g *volcano.PodGroup) { g.Spec.PriorityClassName = "urgent" }}
	e.Create(t, urgent)
	before := bound()
	env.Eventually(t, 2*time.Minute, e.AllBound(t, urgent.Name, first))
	after := bound()
	t.Logf("of %d pods %d were bound when it came, and %d when it was bound", jobs*size, before, after)
	if most := before + jobs*size*2/3; after > most {
		t.Errorf("%d were bound before it, want at most %d", after, most)
	}
}

// TestNobodyWaitsForPodsWhoseBindingsAreRefused: a policy denies the bindings of one namespace. Its pods are bound when it is gone.
func TestNobodyWaitsForPodsWhoseBindingsAreRefused(t *testing.T) {
	t.Parallel()
	const denied, pods = "denied", 20
	e := env.New(t, localcluster.Options{Nodes: 4, Shapes: []string{"cpu=32,memory=64Gi"}})
	if _, err := e.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: denied}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	denyBindings(t, e, denied, "missing", "false")
	e.StartScheduler(t)
	e.CreatePods(t, replicas("refused", "1", pods, func(_ int, p *corev1.Pod) { p.Namespace = denied })...)
	refused := func(want int) func() string {
		return func() string {
			list, err := e.Pods.Pods(denied).List(labels.Everything())
			if err != nil {
				t.Fatal(err)
			}
			bound := 0
			for _, p := range list {
				if p.Spec.NodeName != "" {
					bound++
				}
			}
			if bound != want {
				return fmt.Sprintf("%d of %d pods of namespace %s have nodes, want %d", bound, len(list), denied, want)
			}
			return ""
		}
	}
	comeAndGo(t, e, "others", 8, unchanged)
	if problem := refused(0)(); problem != "" {
		t.Fatal(problem)
	}
	allowBindings(t, e, denied)
	env.Eventually(t, 2*time.Minute, refused(pods))
}

// TestNobodyWaitsForANamespaceWhoseBindingsAreNotAnswered: a webhook of one namespace answers nothing for half a minute, and 500 pods of it have
// more room than they need. Its jobs say why they wait, and start when it answers.
func TestNobodyWaitsForANamespaceWhoseBindingsAreNotAnswered(t *testing.T) {
	t.Parallel()
	const hangs, pods = "hangs", 500
	e := env.New(t, localcluster.Options{Nodes: 8, Shapes: []string{"cpu=128,memory=64Gi,pods=250"}})
	if _, err := e.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hangs}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	rule := admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}}
	gate := e.CloseGate(t, hangs, admissionv1.Create, rule, func(ctx context.Context) error {
		return e.Kube.CoreV1().Pods(hangs).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "missing", Namespace: hangs}, Target: corev1.ObjectReference{Kind: "Node", Name: "none"},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	})
	e.StartScheduler(t)
	e.CreatePods(t, replicas("kept", "1", pods, func(_ int, p *corev1.Pod) { p.Namespace = hangs })...)
	env.Eventually(t, soon, func() string {
		if n := gate.Held(); n < 64 {
			return fmt.Sprintf("%d binds hang, want all 64 that are made at a time", n)
		}
		return ""
	})
	began := time.Now()
	comeAndGo(t, e, "others", 8, unchanged)
	told := func() string {
		list, err := e.Pods.Pods(hangs).List(labels.Everything())
		if err != nil {
			t.Fatal(err)
		}
		said := 0
		for _, p := range list {
			if p.Spec.NodeName != "" {
				t.Fatalf("pod %s has a node, and nobody has answered", p.Name)
			}
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Reason == string(model.SlowBinds) && strings.Contains(c.Message, "pods of namespace hangs") {
					said++
				}
			}
		}
		if said == 0 {
			return "no pod says that its namespace is slow"
		}
		return ""
	}
	t.Logf("others took %s", time.Since(began))
	env.Eventually(t, soon, told)
	gate.Open()
	env.Eventually(t, time.Minute, func() string {
		list, err := e.Pods.Pods(hangs).List(labels.Everything())
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(list, func(p *corev1.Pod) bool { return p.Spec.NodeName == "" }); i >= 0 {
			return fmt.Sprintf("pod %s has no node though bindings are answered", list[i].Name)
		}
		return ""
	})
}

// TestNobodyWaitsForANamespaceWhosePodGroupsCannotBeWritten: a webhook of one namespace answers no write of its 40 PodGroups for half a minute. Job
// controllers elsewhere wait for the phase of theirs.
func TestNobodyWaitsForANamespaceWhosePodGroupsCannotBeWritten(t *testing.T) {
	t.Parallel()
	const hangs, groups = "hangs", 40
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=128,memory=64Gi"}})
	if _, err := e.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hangs}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client := e.Volcano.SchedulingV1beta1()
	for i := range groups {
		_, err := client.PodGroups(hangs).Create(t.Context(), &volcano.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("kept-%d", i)}, Spec: volcano.PodGroupSpec{MinMember: 1},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	rule := admissionv1.Rule{APIGroups: []string{volcano.GroupName}, APIVersions: []string{"*"}, Resources: []string{"podgroups", "podgroups/status"}}
	gate := e.CloseGate(t, hangs, admissionv1.Update, rule, func(ctx context.Context) error {
		_, err := client.PodGroups(hangs).Patch(ctx, "kept-0", types.MergePatchType, []byte(`{"spec":{"minMember":2}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	e.StartScheduler(t)
	env.Eventually(t, soon, func() string {
		if n := gate.Held(); n < 4 {
			return fmt.Sprintf("%d writes hang, want all that are made at a time", n)
		}
		return ""
	})
	phase := func(namespace, name string) func() string {
		return func() string {
			g, err := client.PodGroups(namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if g.Status.Phase != volcano.PodGroupInqueue {
				return fmt.Sprintf("PodGroup %s/%s is %q, want it to be let in", namespace, name, g.Status.Phase)
			}
			return ""
		}
	}
	e.CreateGroup(t, env.Gang{Name: "other", Min: 1, Size: 1, CPU: "1"})
	env.Eventually(t, soon/2, phase(env.Namespace, "other"))
	gate.Open()
	for i := range groups {
		env.Eventually(t, time.Minute, phase(hangs, fmt.Sprintf("kept-%d", i)))
	}
}

// TestNobodyWaitsForANamespaceWhosePodsCannotBeWritten: a webhook of one namespace answers no write of its pods' status for half a minute. None of
// its pods fits, of batch profiles and others, and each is to be told so.
func TestNobodyWaitsForANamespaceWhosePodsCannotBeWritten(t *testing.T) {
	t.Parallel()
	const hangs, pods = "hangs", 20
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=32,memory=64Gi"}})
	if _, err := e.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hangs}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	large := replicas("large", "100", 2*pods, func(i int, p *corev1.Pod) {
		p.Namespace = hangs
		if i%2 == 0 {
			p.Spec.SchedulerName = corev1.DefaultSchedulerName
		}
	})
	e.CreatePods(t, large...)
	rule := admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"}}
	gate := e.CloseGate(t, hangs, admissionv1.Update, rule, func(ctx context.Context) error {
		_, err := e.Kube.CoreV1().Pods(hangs).Patch(ctx, large[0].Name, types.MergePatchType, []byte(`{"status":{"message":"tried"}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
		return err
	})
	e.StartScheduler(t)
	env.Eventually(t, soon, func() string {
		if gate.Held() == 0 {
			return "no write hangs"
		}
		return ""
	})
	comeAndGo(t, e, "others", 8, unchanged)
	gate.Open()
	env.Eventually(t, time.Minute, func() string {
		list, err := e.Pods.Pods(hangs).List(labels.Everything())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
			}) {
				return fmt.Sprintf("pod %s is not told that it does not fit", p.Name)
			}
		}
		return ""
	})
}

// allowBindings takes back what denyBindings did.
func allowBindings(t *testing.T, e *env.Env, namespace string) {
	t.Helper()
	err := e.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), namespace, metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// denyBindings has the API server refuse all bindings of pods in a namespace but those that an expression allows, and returns when it does:
// when it refuses to bind a pod that does not exist.
func denyBindings(t *testing.T, e *env.Env, namespace, missing, allowed string) {
	t.Helper()
	client := e.Kube.AdmissionregistrationV1()
	_, err := client.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: allowed, Message: "not here"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        namespace,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: namespace},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// A binding of a pod that is missing is not found until the policy is in force, and invalid from then on.
	env.Eventually(t, soon, func() string {
		err := e.Kube.CoreV1().Pods(namespace).Bind(t.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: missing, Namespace: namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: "none"},
		}, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) {
			return fmt.Sprintf("the policy is not in force: %v", err)
		}
		return ""
	})
}

// TestAPodThatIsShrunkInPlaceMakesRoom: it runs on, and asks for less. What waits for its room starts once its node has taken the room from it.
func TestAPodThatIsShrunkInPlaceMakesRoom(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=4,memory=4Gi"}})
	e.StartSchedulerWith(t, everyoneIsAdmitted)
	large := env.Gang{Name: "large", Min: 1, Size: 1, CPU: "4"}
	e.Create(t, large)
	env.Eventually(t, soon, e.AllBound(t, large.Name, 1))
	env.Eventually(t, soon, func() string { return running(e.Members(t, large.Name), 1) })
	container := large.Member(0).Spec.Containers[0].Name
	patch := func(subresource, format, cpu string) {
		t.Helper()
		_, err := e.Kube.CoreV1().Pods(env.Namespace).Patch(t.Context(), large.Member(0).Name, types.StrategicMergePatchType,
			fmt.Appendf(nil, format, container, cpu), metav1.PatchOptions{}, subresource)
		if err != nil {
			t.Fatal(err)
		}
	}
	// Ours are no kubelets that resize pods.
	actuate := func(cpu string) {
		t.Helper()
		patch("status", `{"status":{"containerStatuses":[{"name":%q,"allocatedResources":{"cpu":%[2]q},"resources":{"requests":{"cpu":%[2]q}}}]}}`, cpu)
	}
	actuate("4")
	waits := env.Gang{Name: "waits", Min: 2, Size: 2, CPU: "1"}
	e.Create(t, waits)
	env.Eventually(t, soon, e.Waits(t, waits.Name, model.NotEnoughResources))
	patch("resize", `{"spec":{"containers":[{"name":%q,"resources":{"requests":{"cpu":%q}}}]}}`, "2")
	env.Consistently(t, time.Second, e.AllBound(t, waits.Name, 0))
	actuate("2")
	env.Eventually(t, soon, e.AllBound(t, waits.Name, 2))
	env.Eventually(t, soon, func() string { return running(e.Members(t, large.Name), 1) })
}
