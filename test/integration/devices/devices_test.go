// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package devices tests queues that are limited in devices, or due some, on a real control plane with ResourceSlices.
package devices

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const (
	// class takes in the devices of driver.
	class  = "gpu"
	driver = "gpu.example.com"
	// gpus is the name of the class in queues.
	gpus corev1.ResourceName = "deviceclass/gpu"
	// perNode is how many devices each node has.
	perNode  = 4
	patience = time.Minute
)

// cluster is one with devices on its nodes.
type cluster struct {
	*env.Env
	mu sync.Mutex
	// placed are the pods that have nodes and are not to leave them, most is the most there ever were at a time.
	placed map[types.UID]bool
	most   int
}

// see counts pods.
func (c *cluster) see(before, after *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case after == nil:
		delete(c.placed, before.UID)
	case after.Spec.NodeName == "" || after.DeletionTimestamp != nil:
		delete(c.placed, after.UID)
	default:
		c.placed[after.UID] = true
	}
	c.most = max(c.most, len(c.placed))
}

// open starts a cluster with devices, and with queues that are limited in them.
func open(t *testing.T, nodes int, queues map[string]volcano.QueueSpec) *cluster {
	t.Helper()
	c := &cluster{placed: map[types.UID]bool{}}
	c.Env = env.New(t, localcluster.Options{Nodes: nodes, Shapes: []string{"cpu=64,memory=64Gi"}}, c.see)
	_, err := c.Kube.ResourceV1().DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range list.Items {
		if _, err := c.Kube.ResourceV1().ResourceSlices().Create(t.Context(), slice(n.Name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, spec := range queues {
		q := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
		if _, err := c.Volcano.SchedulingV1beta1().Queues().Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// slice has the devices of a node.
func slice(node string) *resourcev1.ResourceSlice {
	devices := make([]resourcev1.Device, perNode)
	for i := range devices {
		devices[i].Name = fmt.Sprintf("gpu-%d", i)
	}
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Devices: devices,
			Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
}

// mostPlaced is the most pods that had nodes at a time.
func (c *cluster) mostPlaced() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// end deletes some of the pods of a job that have nodes, and waits until they are gone.
func (c *cluster) end(t *testing.T, gang string, n int) {
	t.Helper()
	pods := bound(t, c, gang)[:n]
	c.DeletePods(t.Context(), t, pods...)
	env.Eventually(t, patience, func() string {
		for _, p := range pods {
			if now, err := c.Pods.Pods(p.Namespace).Get(p.Name); err == nil && now.UID == p.UID {
				return "pod " + p.Name + " is still there"
			}
		}
		return ""
	})
}

func asks(count int64) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "devices", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count},
	}}}}
}

// template creates a template of claims for so many devices.
func (c *cluster) template(t *testing.T, name string, count int64) corev1.PodResourceClaim {
	t.Helper()
	_, err := c.Kube.ResourceV1().ResourceClaimTemplates(env.Namespace).Create(t.Context(), &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: env.Namespace}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: asks(count)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return corev1.PodResourceClaim{Name: "devices", ResourceClaimTemplateName: &name}
}

// shared creates a claim for so many devices.
func (c *cluster) shared(t *testing.T, name string, count int64) corev1.PodResourceClaim {
	t.Helper()
	_, err := c.Kube.ResourceV1().ResourceClaims(env.Namespace).Create(t.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: env.Namespace}, Spec: asks(count),
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return corev1.PodResourceClaim{Name: "devices", ResourceClaimName: &name}
}

// job is a job of pods that each have a claim and ask for a core.
func job(name, queue string, least, size int, claim corev1.PodResourceClaim) env.Gang {
	return env.Gang{Name: name, Queue: queue, Min: least, Size: size, CPU: "1", Pod: func(_ int, p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{claim}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: claim.Name}}
	}}
}

func amount(n int64) corev1.ResourceList {
	return corev1.ResourceList{gpus: *resource.NewQuantity(n, resource.DecimalSI)}
}

// says is a condition for Eventually: the gang waits for its queue, which is told to have no room of devices.
func (c *cluster) says(t *testing.T, gang, phrase string) func() string {
	return func() string {
		for _, condition := range c.PodGroup(t, gang).Status.Conditions {
			if strings.Contains(condition.Message, phrase) {
				return ""
			}
		}
		return fmt.Sprintf("the conditions of PodGroup %s are %+v", gang, c.PodGroup(t, gang).Status.Conditions)
	}
}

// holds is a condition for Eventually: the status of a queue says that it holds so many devices.
func (c *cluster) holds(t *testing.T, queue string, want int64) func() string {
	return func() string {
		q, err := c.Volcano.SchedulingV1beta1().Queues().Get(t.Context(), queue, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Status.Allocated[gpus]; got.Value() != want {
			return fmt.Sprintf("queue %s holds %s devices by its status, want %d: %v", queue, got.String(), want, q.Status.Allocated)
		}
		return ""
	}
}

// byTree is a configuration in which queues reclaim what they deserve.
const byTree = `
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
`

// TestAQueueNeverHoldsMoreDevicesThanItMay: of eight devices a queue may have four. Its pods get them one by one as others end, a gang that
// needs more than there are left is told so, and there are never more in between.
func TestAQueueNeverHoldsMoreDevicesThanItMay(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"proportion", "capacity"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := open(t, 2, map[string]volcano.QueueSpec{"limited": {Weight: 1, Capability: amount(4)}})
			c.StartSchedulerWith(t, fmt.Sprintf("actions: \"enqueue, allocate, backfill\"\ntiers: [{plugins: [{name: priority}, {name: gang}]}, {plugins: [{name: %s}, {name: predicates}]}]\n", mode))
			one := c.template(t, "one", 1)
			c.Create(t, job("crowd", "limited", 1, 9, one))
			env.Eventually(t, patience, c.AllBound(t, "crowd", 4))
			env.Eventually(t, patience, c.holds(t, "limited", 4))
			gang := job("gang", "limited", 3, 3, one)
			c.CreateLetIn(t, gang)
			env.Eventually(t, patience, c.Waits(t, gang.Name, model.QueueFull))
			env.Eventually(t, patience, c.says(t, "gang", "deviceclass/gpu: 4 held, 3 asked for, limit 4"))
			// One whose pods are created once it is let in is not.
			outside := job("outside", "limited", 3, 0, one)
			outside.Group = func(g *volcano.PodGroup) { g.Spec.MinResources = new(amount(3)) }
			c.Create(t, outside)
			env.Eventually(t, patience, c.Waits(t, "outside", model.NotAdmitted))
			env.Eventually(t, patience, c.says(t, "outside", "insufficient deviceclass/gpu"))
			c.Delete(t, "outside")
			// As pods end, others of the queue follow.
			for left := 9; left > 4; left-- {
				c.end(t, "crowd", 1)
				env.Eventually(t, patience, c.AllBound(t, "crowd", 4))
			}
			for range 3 {
				env.Eventually(t, patience, c.AllBound(t, "gang", 0))
				c.end(t, "crowd", 1)
			}
			env.Eventually(t, patience, c.AllBound(t, "gang", 3))
			env.Eventually(t, patience, c.holds(t, "limited", 4))
			if most := c.mostPlaced(); most != 4 {
				t.Errorf("%d pods had a device each at a time", most)
			}
		})
	}
}

func bound(t *testing.T, c *cluster, gang string) []*corev1.Pod {
	t.Helper()
	var pods []*corev1.Pod
	for _, p := range c.Members(t, gang) {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	return pods
}

// TestAClaimThatPodsShareIsChargedOnce: four pods share a claim of three devices, which leaves the queue one, for which a pod with its own claim comes. It gives
// back the three once all four are gone.
func TestAClaimThatPodsShareIsChargedOnce(t *testing.T) {
	t.Parallel()
	c := open(t, 2, map[string]volcano.QueueSpec{"limited": {Weight: 1, Capability: amount(4)}})
	c.StartSchedulerWith(t, byTree)
	c.Create(t, job("sharers", "limited", 1, 4, c.shared(t, "three", 3)))
	env.Eventually(t, patience, c.AllBound(t, "sharers", 4))
	env.Eventually(t, patience, c.holds(t, "limited", 3))
	one := c.template(t, "one", 1)
	c.Create(t, job("first", "limited", 1, 1, one))
	env.Eventually(t, patience, c.AllBound(t, "first", 1))
	env.Eventually(t, patience, c.holds(t, "limited", 4))
	c.Create(t, job("second", "limited", 1, 1, one))
	env.Eventually(t, patience, c.says(t, "second", "deviceclass/gpu"))
	c.end(t, "sharers", 3)
	env.Eventually(t, patience, c.AllBound(t, "sharers", 1))
	env.Consistently(t, 2*time.Second, c.AllBound(t, "second", 0))
	env.Eventually(t, patience, c.holds(t, "limited", 4))
	c.end(t, "sharers", 1)
	env.Eventually(t, patience, c.AllBound(t, "second", 1))
	env.Eventually(t, patience, c.holds(t, "limited", 2))
}

// TestAQueueTakesTheDevicesThatItIsDue: a queue holds all eight devices and deserves four. A gang of another one that deserves four takes
// these and no more, though there are cores for all, and pods of the first queue wait that would take what victims give back.
func TestAQueueTakesTheDevicesThatItIsDue(t *testing.T) {
	t.Parallel()
	c := open(t, 2, map[string]volcano.QueueSpec{"a": {Weight: 1, Deserved: amount(4)}, "b": {Weight: 1, Deserved: amount(4)}})
	c.StartSchedulerWith(t, byTree)
	one := c.template(t, "one", 1)
	c.Create(t, job("crowd", "a", 1, 16, one))
	env.Eventually(t, patience, c.AllBound(t, "crowd", 8))
	running := func() string {
		for _, p := range bound(t, c, "crowd") {
			if p.Status.Phase != corev1.PodRunning {
				return "pod " + p.Name + " is " + string(p.Status.Phase)
			}
		}
		return ""
	}
	env.Eventually(t, patience, running)
	c.Create(t, job("gang", "b", 2, 2, c.template(t, "two", 2)))
	env.Eventually(t, patience, c.AllBound(t, "gang", 2))
	env.Consistently(t, 3*time.Second, func() string {
		if n := len(bound(t, c, "crowd")); n != 4 {
			return fmt.Sprintf("%d pods of the crowd are left", n)
		}
		return ""
	})
	env.Eventually(t, patience, c.holds(t, "a", 4))
	env.Eventually(t, patience, c.holds(t, "b", 4))
	if totals := c.Views().Cluster().Status.Evictions; totals.Decisions != 1 || totals.Evicted != 4 || totals.Wasted != 0 {
		t.Errorf("the ledger has %+v, want one decision and 4 evicted", totals)
	}
}
