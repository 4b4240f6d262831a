// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceshare_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/deviceshare"
)

const lock = "hamivgpu"

// cluster is a node with two cards of one share each, and what a scheduler has of it.
type cluster struct {
	fwk.Handle
	t       *testing.T
	client  *fake.Clientset
	factory informers.SharedInformerFactory
	// on are the pods that the scheduler takes to be on the node.
	on []*corev1.Pod
	pl *deviceshare.DeviceShare
	// changes counts how often jobs were to be looked at again.
	changes int
}

func (c *cluster) ClientSet() kubernetes.Interface                        { return c.client }
func (c *cluster) SharedInformerFactory() informers.SharedInformerFactory { return c.factory }
func (c *cluster) SnapshotSharedLister() fwk.SharedLister {
	return cache.NewSnapshot(c.on, []*corev1.Node{c.node()})
}

func start(t *testing.T, change func(*config.DeviceShareArgs), pods ...*corev1.Pod) *cluster {
	t.Helper()
	list := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"} {
		list[name] = resource.MustParse("2")
	}
	c := &cluster{t: t, client: fake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{"volcano.sh/node-vgpu-register": "a,1,8000,T4,true,hami-core:b,1,8000,T4,true,hami-core"}},
		Status:     corev1.NodeStatus{Capacity: list, Allocatable: list},
	})}
	for _, p := range pods {
		_, err := c.client.CoreV1().Pods(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{})
		c.check(err)
	}
	c.factory = informers.NewSharedInformerFactory(c.client, 0)
	state := model.NewState()
	state.Observe(func(model.Change) { c.changes++ })
	args := &config.DeviceShareArgs{Mode: config.DeviceVGPU}
	change(args)
	pl, err := deviceshare.New(state, clock.RealClock{})(t.Context(), args, c)
	c.check(err)
	c.pl = pl.(*deviceshare.DeviceShare)
	c.factory.Start(t.Context().Done())
	c.factory.WaitForCacheSync(t.Context().Done())
	t.Cleanup(c.factory.Shutdown)
	return c
}

func (c *cluster) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) node() *corev1.Node {
	n, err := c.client.CoreV1().Nodes().Get(context.Background(), "n", metav1.GetOptions{})
	c.check(err)
	return n
}

// annotate changes an annotation of the node, as its device plugin does; an empty value takes it away.
func (c *cluster) annotate(key, value string) {
	n := c.node()
	n.Annotations[key] = value
	if value == "" {
		delete(n.Annotations, key)
	}
	_, err := c.client.CoreV1().Nodes().Update(context.Background(), n, metav1.UpdateOptions{})
	c.check(err)
}

// has are the names of what the annotations of a pod say, and its cards.
func (c *cluster) has(pod *corev1.Pod) (cards string, keys []string) {
	p, err := c.client.CoreV1().Pods(pod.Namespace).Get(context.Background(), pod.Name, metav1.GetOptions{})
	c.check(err)
	return p.Annotations["volcano.sh/vgpu-ids-new"], slices.Sorted(maps.Keys(p.Annotations))
}

// reserve has a pod reserved, as the scheduler does: from then on it takes the pod to be on the node.
func (c *cluster) reserve(pod *corev1.Pod) *fwk.Status {
	status := c.pl.Reserve(c.t.Context(), framework.NewCycleState(), pod, "n")
	if status.IsSuccess() {
		assumed := pod.DeepCopy()
		assumed.Spec.NodeName = "n"
		c.on = append(c.on, assumed)
	}
	return status
}

func (c *cluster) unreserve(pod *corev1.Pod) {
	c.pl.Unreserve(c.t.Context(), framework.NewCycleState(), pod, "n")
	c.on = slices.DeleteFunc(c.on, func(p *corev1.Pod) bool { return p.UID == pod.UID })
}

func (c *cluster) bind(pod *corev1.Pod) *fwk.Status {
	return c.pl.PreBind(c.t.Context(), framework.NewCycleState(), pod, "n")
}

func wanting(name string) *corev1.Pod {
	limits := corev1.ResourceList{"volcano.sh/vgpu-number": resource.MustParse("1"), "volcano.sh/vgpu-memory": resource.MustParse("1000")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Annotations: map[string]string{"mine": "stays"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: limits, Limits: limits}}}},
	}
}

func plain(*config.DeviceShareArgs) {}

func TestCardsAreKeptFromTheirReservationOn(t *testing.T) {
	p, q, r := wanting("p"), wanting("q"), wanting("r")
	c := start(t, plain, p, q, r)
	for _, pod := range []*corev1.Pod{p, q} {
		if status := c.reserve(pod); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	if status := c.reserve(r); status.Code() != fwk.Unschedulable || !strings.Contains(status.Message(), "all shares are taken") {
		t.Errorf("got status %v for a third pod", status)
	}
	// What is given back goes to the next one, whatever the others would get if they were given cards anew.
	c.unreserve(p)
	for _, pod := range []*corev1.Pod{r, q} {
		if pod == r {
			if status := c.reserve(pod); !status.IsSuccess() {
				t.Fatal(status)
			}
		}
		if status := c.bind(pod); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	type result struct{ R, Q string }
	got := result{}
	got.R, _ = c.has(r)
	got.Q, _ = c.has(q)
	if diff := cmp.Diff(result{"b,NVIDIA,1000,0:;", "a,NVIDIA,1000,0:;"}, got); diff != "" {
		t.Errorf("cards (-want,+got)\n%s", diff)
	}
}

// TestPodsWithoutCardsAreBound without a question whether there is something to do before: the framework does not always ask.
func TestPodsWithoutCardsAreBound(t *testing.T) {
	p := wanting("p")
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	c := start(t, plain, p)
	if status := c.reserve(p); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := c.bind(p); !status.IsSuccess() {
		t.Error(status)
	}
	if _, keys := c.has(p); !slices.Equal(keys, []string{"mine"}) {
		t.Errorf("annotations are %q, want those that the pod had", keys)
	}
	lost := wanting("lost")
	if status := c.bind(lost); status.IsSuccess() {
		t.Error("a pod whose cards are not known was bound")
	}
}

func TestWhatWasWrittenIsTakenBack(t *testing.T) {
	p := wanting("p")
	c := start(t, plain, p)
	if status := c.reserve(p); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := c.bind(p); !status.IsSuccess() {
		t.Fatal(status)
	}
	want := []string{
		"mine", "volcano.sh/bind-phase", "volcano.sh/bind-time", "volcano.sh/devices-to-allocate", "volcano.sh/vgpu-ids-new", "volcano.sh/vgpu-node", "volcano.sh/vgpu-time",
	}
	if _, keys := c.has(p); !slices.Equal(keys, want) {
		t.Errorf("annotations are %q, want %q", keys, want)
	}
	// It may be called again.
	c.unreserve(p)
	c.unreserve(p)
	if _, keys := c.has(p); !slices.Equal(keys, []string{"mine"}) {
		t.Errorf("annotations are %q when the pod was taken back", keys)
	}
}

// The API server refuses the patch of another pod that has taken the name.
func TestThePodIsNamedByItsUID(t *testing.T) {
	p := wanting("p")
	c := start(t, plain, p)
	if status := c.reserve(p); !status.IsSuccess() {
		t.Fatal(status)
	}
	var patch []byte
	c.client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch = action.(clienttesting.PatchAction).GetPatch()
		return false, nil, nil
	})
	if status := c.bind(p); !status.IsSuccess() {
		t.Fatal(status)
	}
	var named struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal(patch, &named); err != nil || named.Metadata.UID != "p" {
		t.Errorf("patched %s, %v", patch, err)
	}
}

func TestPlansReserveNothing(t *testing.T) {
	p := wanting("p")
	c := start(t, plain, p)
	state := framework.NewCycleState()
	gang.MarkPlan(state, nil)
	if status := c.pl.Reserve(t.Context(), state, p, "n"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if _, status := c.pl.PreBindPreFlight(t.Context(), state, p, "n"); !status.IsSkip() {
		t.Errorf("got status %v, as if something was reserved", status)
	}
	if status := c.reserve(p); !status.IsSuccess() {
		t.Fatal(status)
	}
	c.pl.Unreserve(t.Context(), state, p, "n")
	if _, status := c.pl.PreBindPreFlight(t.Context(), framework.NewCycleState(), p, "n"); !status.IsSuccess() {
		t.Errorf("got status %v, as if a plan had taken the reservation back", status)
	}
}

func TestPodsThatAreGoneAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := wanting("p")
		c := start(t, plain, p)
		// Watches begin after the informers are synced, and the client tells them nothing that happened before.
		synctest.Wait()
		if status := c.reserve(p); !status.IsSuccess() {
			t.Fatal(status)
		}
		c.check(c.client.CoreV1().Pods("default").Delete(t.Context(), "p", metav1.DeleteOptions{}))
		synctest.Wait()
		if _, status := c.pl.PreBindPreFlight(t.Context(), framework.NewCycleState(), p, "n"); !status.IsSkip() {
			t.Errorf("got status %v, as if something was reserved", status)
		}
	})
}

func TestJobsAreLookedAtAgainWhenCardsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, plain)
		synctest.Wait()
		var got []int
		for _, change := range [][2]string{{"other", "x"}, {"volcano.sh/node-vgpu-register", "a,1,8000,T4,false,hami-core"}, {"volcano.sh/gpu-unhealthy-ids", "0"}} {
			before := c.changes
			c.annotate(change[0], change[1])
			synctest.Wait()
			got = append(got, c.changes-before)
		}
		if !slices.Equal(got, []int{0, 1, 1}) {
			t.Errorf("looked at again %d times for each change", got)
		}
	})
}

func TestPodsWaitForTheLockOfTheNode(t *testing.T) {
	for name, tc := range map[string]struct {
		// then is what happens to the first pod and its lock after a minute.
		then func(*cluster, *corev1.Pod)
		// want is when the second pod is bound after the first.
		want time.Duration
	}{
		"until the device plugin has served the pod before": {func(c *cluster, _ *corev1.Pod) { c.annotate(lock, "") }, time.Minute},
		"until the pod before is taken back":                {(*cluster).unreserve, time.Minute},
		"until the lock ends":                               {func(*cluster, *corev1.Pod) {}, 5 * time.Minute},
		"not for one that cannot be read":                   {func(c *cluster, _ *corev1.Pod) { c.annotate(lock, "now") }, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, q := wanting("p"), wanting("q")
				c := start(t, func(a *config.DeviceShareArgs) { a.NodeLock = true }, p, q)
				for _, pod := range []*corev1.Pod{p, q} {
					if status := c.reserve(pod); !status.IsSuccess() {
						t.Fatal(status)
					}
				}
				begin := time.Now()
				if status := c.bind(p); !status.IsSuccess() {
					t.Fatal(status)
				}
				synctest.Wait()
				bound := make(chan time.Duration, 1)
				go func() {
					if status := c.bind(q); !status.IsSuccess() {
						t.Error(status)
					}
					bound <- time.Since(begin)
				}()
				time.Sleep(time.Minute - time.Second/2)
				tc.then(c, p)
				if got := (<-bound).Truncate(time.Second); got != tc.want {
					t.Errorf("bound after %s, want %s", got, tc.want)
				}
				if since := c.node().Annotations[lock]; since != begin.Add(tc.want).UTC().Format(time.RFC3339) {
					t.Errorf("locked since %s", since)
				}
			})
		})
	}
}

func TestWaitingForALockEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := wanting("p")
		c := start(t, func(a *config.DeviceShareArgs) { a.NodeLock = true }, p)
		if status := c.reserve(p); !status.IsSuccess() {
			t.Fatal(status)
		}
		// Somebody locks it again and again.
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				c.annotate(lock, time.Now().UTC().Format(time.RFC3339))
				select {
				case <-stop:
					return
				case <-time.After(time.Minute):
				}
			}
		}()
		synctest.Wait()
		status := c.bind(p)
		if status.Code() != fwk.Error || !strings.Contains(status.Message(), "locking node n for pod default/p: annotation hamivgpu of the node was there for 5m0s") {
			t.Errorf("got status %v", status)
		}
		c.unreserve(p)
		if c.node().Annotations[lock] == "" {
			t.Error("the lock of somebody else was taken away")
		}
	})
}

func TestWhatTheFactoryRefuses(t *testing.T) {
	c := start(t, plain)
	for want, obj := range map[string]*config.DeviceShareArgs{
		"mode: Required value: write GPUNumber, GPUSharing or VGPU": {},
		"nodeLock: Forbidden: only mode VGPU has it; remove it":     {Mode: config.DeviceGPUNumber, NodeLock: true},
	} {
		if _, err := deviceshare.New(model.NewState(), clock.RealClock{})(t.Context(), obj, c); err == nil || err.Error() != want {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	if _, err := deviceshare.New(model.NewState(), clock.RealClock{})(t.Context(), &config.BinpackArgs{}, c); err == nil || err.Error() != "want args to be of type DeviceShareArgs, got *config.BinpackArgs" {
		t.Errorf("error is %v", err)
	}
}
