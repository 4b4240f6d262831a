// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package env gives a test a real control plane and the scheduler: etcd, kube-apiserver, controllers and simulated
// kubelets in a child process, the scheduler with our plugins and the shipped configuration in the test's own process,
// where the race detector sees it.
package env

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/app"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
)

// NativeGroups switches on all that there is of Kubernetes' own PodGroups in a control plane.
func NativeGroups(o localcluster.Options) localcluster.Options {
	o.FeatureGates = append(o.FeatureGates, "GenericWorkload=true", "WorkloadWithJob=true", "TopologyAwareWorkloadScheduling=true")
	o.RuntimeConfig = append(o.RuntimeConfig, "scheduling.k8s.io/v1beta1=true", "scheduling.k8s.io/v1alpha3=true")
	return o
}

// Namespace is where tests create their objects.
const Namespace = "default"

// Env is one cluster, private to one test.
type Env struct {
	*localcluster.Cluster
	Kube    kubernetes.Interface
	Volcano volcanoclient.Interface
	// Pods reads what the API server has told so far.
	Pods corelisters.PodLister
	// Core is that of the scheduler that was started last; nil before the first.
	Core *core.Core

	observers []func(before, after *corev1.Pod)
}

// New starts a cluster that ends with the test. Observers see every change of a pod in order; before is nil for a new
// pod, after is nil for one that is gone.
func New(t *testing.T, o localcluster.Options, observers ...func(before, after *corev1.Pod)) *Env {
	t.Helper()
	cluster, err := localcluster.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	e := &Env{Cluster: cluster, observers: observers}
	if e.Kube, err = kubernetes.NewForConfig(cluster.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	if e.Volcano, err = volcanoclient.NewForConfig(cluster.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	if o.EmulatedVersion == "" {
		actAsItsServer(t, e.Kube)
	}
	e.watchPods(t)
	return e
}

// acting: the feature gates of this process are those of the version as which schedulers act beside its API servers. All of these are of one version, but
// for those that emulate another, which only the scheduler's binary serves.
var acting sync.Once

// actAsItsServer has this process act as the version of its API servers, as the scheduler's binary does.
func actAsItsServer(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	acting.Do(func() {
		version, err := app.ActsAs(client.Discovery())
		if err == nil {
			err = utilfeature.DefaultMutableFeatureGate.SetEmulationVersion(version)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

func (e *Env) watchPods(t *testing.T) {
	factory := informers.NewSharedInformerFactory(e.Kube, 0)
	pods := factory.Core().V1().Pods()
	tell := func(before, after *corev1.Pod) {
		for _, observe := range e.observers {
			observe(before, after)
		}
	}
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { tell(nil, o.(*corev1.Pod)) },
		UpdateFunc: func(before, after any) { tell(before.(*corev1.Pod), after.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			tell(o.(*corev1.Pod), nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Pods = pods.Lister()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
}

// Eventually waits until ok returns "", and fails the test with the last answer after the time.
func Eventually(t *testing.T, within time.Duration, ok func() string) {
	t.Helper()
	gomega.NewWithT(t).Eventually(ok).WithTimeout(within).WithPolling(20 * time.Millisecond).Should(gomega.BeEmpty())
}

// Consistently checks that ok returns "" all the time.
func Consistently(t *testing.T, during time.Duration, ok func() string) {
	t.Helper()
	gomega.NewWithT(t).Consistently(ok).WithTimeout(during).WithPolling(50 * time.Millisecond).Should(gomega.BeEmpty())
}

// NextSecond waits until whatever is created is younger than what there is. Creation timestamps count in seconds, and the control plane goes by the
// same clock.
func NextSecond() {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
}

// PodGroup reads a PodGroup from the API server.
func (e *Env) PodGroup(t *testing.T, name string) *volcano.PodGroup {
	t.Helper()
	g, err := e.Volcano.SchedulingV1beta1().PodGroups(Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// ChangeQueue changes the spec of a queue. The scheduler may write the queue's status between reading and writing, so
// that it is done again with what is then there.
func (e *Env) ChangeQueue(t *testing.T, name string, change func(*volcano.QueueSpec)) {
	t.Helper()
	queues := e.Volcano.SchedulingV1beta1().Queues()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		q, err := queues.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&q.Spec)
		_, err = queues.Update(t.Context(), q, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Bound counts the live pods of a gang that have a node, and all of them.
func (e *Env) Bound(t *testing.T, group string) (bound, all int) {
	t.Helper()
	for _, p := range e.Members(t, group) {
		all++
		if p.Spec.NodeName != "" {
			bound++
		}
	}
	return bound, all
}

// DeletePods deletes pods at once.
func (e *Env) DeletePods(ctx context.Context, t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		err := e.Kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// PriorityClass creates a priority class unless it is there, and returns when pods may name it.
func (e *Env) PriorityClass(t *testing.T, name string, value int32) {
	t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	if err := localcluster.CreatePriorityClass(t.Context(), e.Kube, class); err != nil {
		t.Fatal(err)
	}
}
