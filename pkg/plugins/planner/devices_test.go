// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// The devices of the tests: each of two nodes has so many, and so many of those are held.
const (
	perNode = 3
	held    = 2
	driver  = "gpu.example.com"
)

var deviceNodes = []string{"a", "b"}

// deviceTest is a profile with DynamicResources, and pods with claims.
type deviceTest struct {
	profile *deviceProfile
	// holders have one device each, by "node/device"; waiting are pods that ask for one, two and three.
	holders map[string]*corev1.Pod
	waiting []*corev1.Pod
}

func holding(name, node string, claim *resourcev1.ResourceClaim) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team", UID: types.UID(name)},
		Spec: corev1.PodSpec{
			NodeName:       node,
			ResourceClaims: []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: &claim.Name}},
			Containers:     []corev1.Container{{Name: "work", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "devices"}}}}},
		},
	}
}

func claimFor(pod string, count int64) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: "team", UID: types.UID("claim-" + pod), ResourceVersion: "1"},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count},
		}}}},
	}
}

func newDeviceTest(t *testing.T) *deviceTest {
	t.Helper()
	d := &deviceTest{holders: map[string]*corev1.Pod{}}
	objects := []runtime.Object{&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}},
	}}}
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	for _, name := range deviceNodes {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: 1},
		}}
		for i := range perNode {
			device := fmt.Sprintf("gpu-%d", i)
			if slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: device}); i >= held {
				continue
			}
			claim := claimFor("holder-"+name+"-"+device, 1)
			pod := holding(claim.Name, name, claim)
			claim.Status = resourcev1.ResourceClaimStatus{
				Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
					{Request: "one", Driver: driver, Pool: name, Device: device},
				}}},
				ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
			}
			d.holders[name+"/"+device] = pod
			pods, objects = append(pods, pod), append(objects, claim, pod)
		}
		objects = append(objects, slice)
	}
	for count := range int64(perNode) {
		claim := claimFor(fmt.Sprintf("waits-%d", count+1), count+1)
		d.waiting = append(d.waiting, holding(claim.Name, "", claim))
		objects = append(objects, claim)
	}
	d.profile = deviceFramework(t, objects, pods, nodes)
	return d
}

// deviceFramework is a profile of DynamicResources, with the manager of claims that kube-scheduler has.
func deviceFramework(t *testing.T, objects []runtime.Object, pods []*corev1.Pod, nodes []*corev1.Node) *deviceProfile {
	t.Helper()
	schedulermetrics.Register()
	ctx := t.Context()
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	slices, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: factory.Resource().V1().ResourceSlices()})
	if err != nil {
		t.Fatal(err)
	}
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	enabled := func(names ...string) (set config.PluginSet) {
		for _, name := range names {
			set.Enabled = append(set.Enabled, config.Plugin{Name: name})
		}
		return set
	}
	f, err := frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), &config.KubeSchedulerProfile{
		SchedulerName: "volcano",
		Plugins: &config.Plugins{
			QueueSort: enabled(names.PrioritySort), Bind: enabled(names.DefaultBinder), MultiPoint: enabled(names.DynamicResources),
		},
		PluginConfig: []config.PluginConfig{{Name: names.DynamicResources, Args: &config.DynamicResourcesArgs{}}},
	},
		frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(pods, nodes)), frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx, claims, slices, factory)),
	)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	manager := f.SharedDRAManager()
	gomega.NewWithT(t).Eventually(func() ([3]int, error) {
		known, errClaims := manager.ResourceClaims().List()
		allocated, errDevices := manager.ResourceClaims().ListAllAllocatedDevices()
		offered, errSlices := manager.ResourceSlices().ListWithDeviceTaintRules()
		return [3]int{len(known), len(allocated), len(offered)}, errors.Join(errClaims, errDevices, errSlices)
	}).WithTimeout(30 * time.Second).Should(gomega.Equal([3]int{held*len(deviceNodes) + perNode, held * len(deviceNodes), len(deviceNodes)}))
	return &deviceProfile{f, NewDevices(nil)}
}

// deviceTrial is pods removed from their nodes and planned on them, as one trial has it.
type deviceTrial struct {
	*deviceTest
	t *rapid.T
	// away are the devices whose holders are removed, planned the nodes of planned pods, in states in which they were reserved.
	away    sets.Set[string]
	planned map[*corev1.Pod]string
	states  map[*corev1.Pod]fwk.CycleState
	// looked are the states that hear of what is moved: that of the pod that is looked at, and those of planned ones.
	looked map[*corev1.Pod]fwk.CycleState
}

// tell has the states hear that a pod was removed, or added.
func (d *deviceTrial) tell(other *corev1.Pod, node string, removed bool) {
	info, err := framework.NewPodInfo(other)
	if err != nil {
		d.t.Fatal(err)
	}
	for pod, state := range d.looked {
		run := d.profile.RunPreFilterExtensionAddPod
		if removed {
			run = d.profile.RunPreFilterExtensionRemovePod
		}
		if status := run(context.Background(), state, pod, info, d.node(node)); !status.IsSuccess() {
			d.t.Fatalf("telling pod %s of %s: %s", pod.Name, other.Name, status.Message())
		}
	}
}

func (d *deviceTrial) node(name string) fwk.NodeInfo {
	info, err := d.profile.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil {
		d.t.Fatal(err)
	}
	return info
}

// begin has a pod looked at.
func (d *deviceTrial) begin(pod *corev1.Pod) {
	state := framework.NewCycleState()
	if _, status, _ := d.profile.RunPreFilterPlugins(context.Background(), state, pod); !status.IsSuccess() {
		d.t.Fatalf("PreFilter of pod %s: %s", pod.Name, status.Message())
	}
	before := d.looked
	d.looked = map[*corev1.Pod]fwk.CycleState{pod: state}
	for device := range d.away {
		d.tell(d.holders[device], d.holders[device].Spec.NodeName, true)
	}
	for other, node := range d.planned {
		d.tell(other, node, false)
	}
	d.looked = before
	d.looked[pod] = state
}

// taken are the devices that others than a pod have.
func (d *deviceTrial) taken(pod *corev1.Pod) sets.Set[string] {
	taken := sets.New[string]()
	for device := range d.holders {
		if !d.away.Has(device) {
			taken.Insert(device)
		}
	}
	for other := range d.planned {
		a := d.profile.SharedDRAManager().ResourceClaims().GetPendingAllocation("claim-" + other.UID)
		if other == pod || a == nil {
			continue
		}
		for _, r := range a.Devices.Results {
			taken.Insert(r.Pool + "/" + r.Device)
		}
	}
	return taken
}

// check compares what the filters say of a pod with the devices that are left for it. Of a planned pod only its own node counts: by the state in
// which it was reserved, every node has what it has there.
func (d *deviceTrial) check(i int) {
	pod := d.waiting[i]
	for _, node := range deviceNodes {
		if on := d.planned[pod]; on != "" && on != node {
			continue
		}
		free := perNode
		for device := range d.taken(pod) {
			if strings.HasPrefix(device, node+"/") {
				free--
			}
		}
		status := d.profile.RunFilterPlugins(context.Background(), d.looked[pod], pod, d.node(node))
		if fits := status.IsSuccess(); fits != (free >= i+1) {
			d.t.Fatalf("a pod with %d devices fits on node %s: %t (%s); %d are free there, removed: %v, planned: %d pods", i+1, node, fits, status.Message(), free,
				sets.List(d.away), len(d.planned))
		}
	}
}

// plan reserves a node for a pod that is looked at, if it fits there.
func (d *deviceTrial) plan(pod *corev1.Pod, node string) {
	state := d.looked[pod]
	if d.planned[pod] != "" || !d.profile.RunFilterPlugins(context.Background(), state, pod, d.node(node)).IsSuccess() {
		return
	}
	if status := d.profile.RunReservePluginsReserve(context.Background(), state, pod, node); !status.IsSuccess() {
		d.t.Fatalf("reserving node %s for pod %s: %s", node, pod.Name, status.Message())
	}
	d.planned[pod], d.states[pod] = node, state
	d.tell(pod, node, false)
}

func TestFiltersSeeTheDevicesOfRemovedPods(t *testing.T) {
	test := newDeviceTest(t)
	claims, ctx := test.profile.SharedDRAManager().ResourceClaims(), t.Context()
	rapid.Check(t, func(t *rapid.T) {
		d := &deviceTrial{
			deviceTest: test, t: t, away: sets.New[string](), planned: map[*corev1.Pod]string{},
			states: map[*corev1.Pod]fwk.CycleState{}, looked: map[*corev1.Pod]fwk.CycleState{},
		}
		defer func() {
			for pod, state := range d.states {
				d.profile.RunReservePluginsUnreserve(ctx, state, pod, d.planned[pod])
			}
			for _, pod := range d.waiting {
				if claims.GetPendingAllocation("claim-"+pod.UID) != nil {
					t.Errorf("the claim of pod %s has kept its devices", pod.Name)
				}
			}
		}()
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			device := fmt.Sprintf("%s/gpu-%d", rapid.SampledFrom(deviceNodes).Draw(t, "node"), rapid.IntRange(0, held-1).Draw(t, "device"))
			holder, i := d.holders[device], rapid.IntRange(0, len(d.waiting)-1).Draw(t, "pod")
			pod := d.waiting[i]
			if d.looked[pod] == nil {
				d.begin(pod)
			}
			switch rapid.SampledFrom([]string{"remove", "return", "plan"}).Draw(t, "step") {
			case "remove":
				if !d.away.Has(device) {
					d.away.Insert(device)
					d.tell(holder, holder.Spec.NodeName, true)
				}
			case "return":
				if d.away.Has(device) {
					d.away.Delete(device)
					d.tell(holder, holder.Spec.NodeName, false)
				}
			case "plan":
				d.plan(pod, rapid.SampledFrom(deviceNodes).Draw(t, "on"))
			}
			d.check(i)
		}
	})
}

// TestAClaimThatGoesAwayInATrialKeepsNoDevices: what a planned pod was to have is given back though nobody can tell any more what the pod asked for.
func TestAClaimThatGoesAwayInATrialKeepsNoDevices(t *testing.T) {
	d := newDeviceTest(t)
	ctx, pod, holder := t.Context(), d.waiting[1], d.holders["a/gpu-0"]
	claims := d.profile.SharedDRAManager().ResourceClaims()
	gone, err := framework.NewPodInfo(holder)
	if err != nil {
		t.Fatal(err)
	}
	node, err := d.profile.SnapshotSharedLister().NodeInfos().Get("a")
	if err != nil {
		t.Fatal(err)
	}
	state := framework.NewCycleState()
	_, status, _ := d.profile.RunPreFilterPlugins(ctx, state, pod)
	for _, step := range []func() *fwk.Status{
		func() *fwk.Status { return d.profile.RunPreFilterExtensionRemovePod(ctx, state, pod, gone, node) },
		func() *fwk.Status { return d.profile.RunFilterPlugins(ctx, state, pod, node) },
		func() *fwk.Status { return d.profile.RunReservePluginsReserve(ctx, state, pod, "a") },
		func() *fwk.Status { return d.profile.RunPreFilterExtensionAddPod(ctx, state, pod, gone, node) },
	} {
		if status.IsSuccess() {
			status = step()
		}
	}
	if !status.IsSuccess() {
		t.Fatalf("planning the pod: %s", status.Message())
	}
	if err := d.profile.ClientSet().ResourceV1().ResourceClaims(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gomega.NewWithT(t).Eventually(func() error {
		_, err := claims.Get(pod.Namespace, pod.Name)
		return err
	}).Should(gomega.HaveOccurred())
	if d.profile.RunFilterPlugins(ctx, state, pod, node).IsSuccess() {
		t.Error("a pod whose claim is gone fits")
	}
	d.profile.RunReservePluginsUnreserve(ctx, state, pod, "a")
	if claims.GetPendingAllocation("claim-"+pod.UID) != nil {
		t.Error("a claim that is gone has kept its devices")
	}
}

// moveIn has a state hear that a pod was removed from a node, or added.
func (d *deviceTest) moveIn(t *testing.T, state fwk.CycleState, pod, other *corev1.Pod, node string, removed bool) {
	t.Helper()
	run := d.profile.RunPreFilterExtensionAddPod
	if removed {
		run = d.profile.RunPreFilterExtensionRemovePod
	}
	info, err := framework.NewPodInfo(other)
	if err != nil {
		t.Fatal(err)
	}
	if status := run(t.Context(), state, pod, info, d.on(t, node)); !status.IsSuccess() {
		t.Fatal(status.Message())
	}
}

func (d *deviceTest) on(t *testing.T, node string) fwk.NodeInfo {
	t.Helper()
	info, err := d.profile.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestDevicesThatAPodSharesWithAVictimAreNotFree: the pod goes on holding them, and cannot have them by another claim.
func TestDevicesThatAPodSharesWithAVictimAreNotFree(t *testing.T) {
	d := newDeviceTest(t)
	victim := d.holders["a/gpu-0"]
	// It asks for two devices, of which one is left on the node, and shares the claim of the victim.
	pod := d.waiting[1].DeepCopy()
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "shared", ResourceClaimName: &victim.Name})
	state := framework.NewCycleState()
	if _, status, _ := d.profile.RunPreFilterPlugins(t.Context(), state, pod); !status.IsSuccess() {
		t.Fatal(status.Message())
	}
	d.moveIn(t, state, pod, victim, "a", true)
	if d.profile.RunFilterPlugins(t.Context(), state, pod, d.on(t, "a")).IsSuccess() {
		t.Error("it fits")
	}
	d.moveIn(t, state, pod, d.holders["a/gpu-1"], "a", true)
	if status := d.profile.RunFilterPlugins(t.Context(), state, pod, d.on(t, "a")); !status.IsSuccess() {
		t.Errorf("with another holder gone it does not fit: %s", status.Message())
	}
}

// TestNobodyIsEvictedForAClaimThatAnotherPlannedPodHas: as long as the devices of a claim are only planned, nobody else can be planned with it.
func TestNobodyIsEvictedForAClaimThatAnotherPlannedPodHas(t *testing.T) {
	d := newDeviceTest(t)
	first := d.waiting[1]
	second := first.DeepCopy()
	second.Name, second.UID = "second", "second"
	state := framework.NewCycleState()
	_, status, _ := d.profile.RunPreFilterPlugins(t.Context(), state, first)
	d.moveIn(t, state, first, d.holders["a/gpu-0"], "a", true)
	if status.IsSuccess() {
		status = d.profile.RunFilterPlugins(t.Context(), state, first, d.on(t, "a"))
	}
	if status.IsSuccess() {
		status = d.profile.RunReservePluginsReserve(t.Context(), state, first, "a")
	}
	if !status.IsSuccess() {
		t.Fatal(status.Message())
	}
	defer d.profile.RunReservePluginsUnreserve(context.WithoutCancel(t.Context()), state, first, "a")
	d.moveIn(t, state, second, first, "a", false)
	d.moveIn(t, state, second, d.holders["b/gpu-0"], "b", true)
	for _, node := range deviceNodes {
		if d.profile.RunFilterPlugins(t.Context(), state, second, d.on(t, node)).IsSuccess() {
			t.Errorf("it fits on node %s", node)
		}
	}
}

// TestDevicesThatAreKeptForOthersAreTaken, for whoever plans; the job they are kept for has them.
func TestDevicesThatAreKeptForOthersAreTaken(t *testing.T) {
	d := newDeviceTest(t)
	waits, other := &model.Job{Key: model.JobKey{Name: "waits"}}, &model.Job{Key: model.JobKey{Name: "other"}}
	// The last device of node a.
	left := &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "one", Driver: driver, Pool: "a", Device: fmt.Sprintf("gpu-%d", held)},
	}}}
	d.profile.devices.kept = func(except model.JobKey) []*resourcev1.AllocationResult {
		if except == waits.Key {
			return nil
		}
		return []*resourcev1.AllocationResult{left}
	}
	for job, want := range map[*model.Job]bool{waits: true, other: false} {
		state := framework.NewCycleState()
		gang.MarkPlan(state, job)
		if _, status, _ := d.profile.RunPreFilterPlugins(t.Context(), state, d.waiting[0]); !status.IsSuccess() {
			t.Fatal(status.Message())
		}
		if got := d.profile.RunFilterPlugins(t.Context(), state, d.waiting[0], d.on(t, "a")).IsSuccess(); got != want {
			t.Errorf("job %s fits on node a: %t, want %t", job.Key.Name, got, want)
		}
		if !d.profile.RunFilterPlugins(t.Context(), state, d.waiting[0], d.on(t, "b")).IsSuccess() {
			t.Errorf("job %s does not fit on node b, where nothing is kept", job.Key.Name)
		}
	}
}

// TestAProfileThatIsMadeAnewSeesDevices: a new configuration makes a profile's plugins anew, on the informers and claims that there are.
func TestAProfileThatIsMadeAnewSeesDevices(t *testing.T) {
	d := newDeviceTest(t)
	for range 2 {
		d.profile = &deviceProfile{d.profile.Framework, d.profile.devices}
		state := framework.NewCycleState()
		if _, status, _ := d.profile.RunPreFilterPlugins(t.Context(), state, d.waiting[1]); !status.IsSuccess() {
			t.Fatal(status.Message())
		}
		d.moveIn(t, state, d.waiting[1], d.holders["a/gpu-0"], "a", true)
		if status := d.profile.RunFilterPlugins(t.Context(), state, d.waiting[1], d.on(t, "a")); !status.IsSuccess() {
			t.Fatal(status.Message())
		}
	}
}

// TestAPlanLeavesClaimsAloneThatAreBeingBound: a pod is being bound, and has just written its claim, when another one is planned that shares the claim.
func TestAPlanLeavesClaimsAloneThatAreBeingBound(t *testing.T) {
	d := newDeviceTest(t)
	claims := d.profile.SharedDRAManager().ResourceClaims()
	fits := func(f framework.Framework, pod *corev1.Pod) fwk.CycleState {
		t.Helper()
		state := framework.NewCycleState()
		if _, status, _ := f.RunPreFilterPlugins(t.Context(), state, pod); !status.IsSuccess() {
			t.Fatal(status.Message())
		}
		if status := f.RunFilterPlugins(t.Context(), state, pod, d.on(t, "a")); !status.IsSuccess() {
			t.Fatal(status.Message())
		}
		return state
	}
	bound := d.waiting[0]
	if status := d.profile.Framework.RunReservePluginsReserve(t.Context(), fits(d.profile.Framework, bound), bound, "a"); !status.IsSuccess() {
		t.Fatal(status.Message())
	}
	written, err := claims.Get(bound.Namespace, bound.Name)
	if err != nil {
		t.Fatal(err)
	}
	written = written.DeepCopy()
	written.Status.Allocation, written.ResourceVersion = claims.GetPendingAllocation(written.UID), "2"
	if err := claims.AssumeClaimAfterAPICall(written); err != nil {
		t.Fatal(err)
	}
	check := func(when string, pending bool) {
		t.Helper()
		if known, err := claims.Get(bound.Namespace, bound.Name); err != nil || known.Status.Allocation == nil {
			t.Errorf("%s the claim's allocation is forgotten (%v)", when, err)
		}
		if got := claims.GetPendingAllocation(written.UID) != nil; got != pending {
			t.Errorf("%s its allocation is being written: %t, want %t", when, got, pending)
		}
	}

	other := holding("other", "", written)
	plan := func() {
		t.Helper()
		state := fits(d.profile, other)
		if status := d.profile.RunReservePluginsReserve(t.Context(), state, other, "a"); !status.IsSuccess() {
			t.Fatal(status.Message())
		}
		d.profile.RunReservePluginsUnreserve(t.Context(), state, other, "a")
	}
	plan()
	check("after the plan", true)
	claims.MaybeRemoveClaimPendingAllocation(written.UID, true)
	plan()
	check("after the binding, and another plan,", false)
}
