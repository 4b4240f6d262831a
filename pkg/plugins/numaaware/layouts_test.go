// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package numaaware_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	nodeinfo "volcano.sh/apis/pkg/apis/nodeinfo/v1alpha1"
	volcanofake "volcano.sh/apis/pkg/client/clientset/versioned/fake"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	"github.com/caldera-scheduler/caldera/pkg/plugins/numaaware"
)

// finder says whether the API is served.
type finder struct {
	discovery.ServerResourcesInterface
	mu     sync.Mutex
	answer error
}

func (f *finder) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &metav1.APIResourceList{GroupVersion: version}, f.answer
}

func (f *finder) set(answer error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// topologyOf is a Numatopology of two CPUs, some of which are free.
func topologyOf(name, free string) *nodeinfo.Numatopology {
	return &nodeinfo.Numatopology{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: nodeinfo.NumatopoSpec{
		CPUDetail:  map[string]nodeinfo.CPUInfo{"0": {}, "1": {CoreID: 1}},
		NumaResMap: map[string]nodeinfo.ResourceInfo{"cpu": {Allocatable: free}},
	}}
}

func TestNumatopologiesAreFollowed(t *testing.T) {
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false)
	notServed := apierrors.NewNotFound(schema.GroupResource{}, "numatopologies")
	type known struct {
		Complete bool
		A, B     string
		// Told: jobs are looked at again since the step before.
		Told bool
	}
	for name, tc := range map[string]struct {
		served error
		// step changes something.
		step        func(*testing.T, *finder, *volcanofake.Clientset) error
		first, then known
	}{
		"a change": {
			step: func(t *testing.T, _ *finder, client *volcanofake.Clientset) error {
				_, err := client.NodeinfoV1alpha1().Numatopologies().Update(t.Context(), topologyOf("a", "1"), metav1.UpdateOptions{})
				return err
			},
			first: known{true, "0-1", "", true}, then: known{true, "1", "", true},
		},
		"an update that changes nothing": {
			step: func(t *testing.T, _ *finder, client *volcanofake.Clientset) error {
				same := topologyOf("a", "0-1")
				same.Labels = map[string]string{"seen": "again"}
				_, err := client.NodeinfoV1alpha1().Numatopologies().Update(t.Context(), same, metav1.UpdateOptions{})
				return err
			},
			first: known{true, "0-1", "", true}, then: known{true, "0-1", "", false},
		},
		"another one": {
			step: func(t *testing.T, _ *finder, client *volcanofake.Clientset) error {
				_, err := client.NodeinfoV1alpha1().Numatopologies().Create(t.Context(), topologyOf("b", "0"), metav1.CreateOptions{})
				return err
			},
			first: known{true, "0-1", "", true}, then: known{true, "0-1", "0", true},
		},
		"one that goes": {
			step: func(t *testing.T, _ *finder, client *volcanofake.Clientset) error {
				return client.NodeinfoV1alpha1().Numatopologies().Delete(t.Context(), "a", metav1.DeleteOptions{})
			},
			first: known{true, "0-1", "", true}, then: known{true, "", "", true},
		},
		"the API is served later": {
			served: notServed,
			step: func(_ *testing.T, f *finder, _ *volcanofake.Clientset) error {
				f.set(nil)
				return nil
			},
			first: known{true, "", "", true}, then: known{true, "0-1", "", true},
		},
		"the API server cannot say at first": {
			served: errors.New("the server is starting"),
			step: func(_ *testing.T, f *finder, _ *volcanofake.Clientset) error {
				f.set(nil)
				return nil
			},
			first: known{}, then: known{true, "0-1", "", true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, client := &finder{answer: tc.served}, volcanofake.NewSimpleClientset(topologyOf("a", "0-1"))
				var told atomic.Bool
				layouts := numaaware.NewLayouts(func() { told.Store(true) })
				go layouts.Follow(t.Context(), informer.Clients{Discovery: f, Volcano: client})
				look := func() known {
					synctest.Wait()
					return known{layouts.Complete(), layouts.Free("a"), layouts.Free("b"), told.Swap(false)}
				}
				// The informer asks every tenth of a second whether it has read everything.
				time.Sleep(500 * time.Millisecond)
				if diff := cmp.Diff(tc.first, look()); diff != "" {
					t.Errorf("at first (-want,+got)\n%s", diff)
				}
				if err := tc.step(t, f, client); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if diff := cmp.Diff(tc.then, look()); diff != "" {
					t.Errorf("then (-want,+got)\n%s", diff)
				}
			})
		})
	}
}

// Nobody is placed as if there were no Numatopologies because they have not been read yet.
func TestGuaranteedPodsWaitUntilNumatopologiesHaveBeenRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &finder{answer: errors.New("the server is starting")}
		connect := func(fwk.Handle) (informer.Clients, error) {
			return informer.Clients{Discovery: f, Volcano: volcanofake.NewSimpleClientset()}, nil
		}
		plugin, err := numaaware.New(model.NewState(), connect)(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		limits := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
		pod := func(resources corev1.ResourceRequirements) *corev1.Pod {
			return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: resources}}}}
		}
		guaranteed, burstable := pod(corev1.ResourceRequirements{Requests: limits, Limits: limits}), pod(corev1.ResourceRequirements{Requests: limits})
		code := func(p *corev1.Pod) fwk.Code {
			_, status := plugin.(fwk.PreFilterPlugin).PreFilter(t.Context(), framework.NewCycleState(), p, nil)
			return status.Code()
		}
		got := []fwk.Code{code(guaranteed), code(burstable)}
		f.set(apierrors.NewNotFound(schema.GroupResource{}, "numatopologies"))
		time.Sleep(time.Minute)
		got = append(got, code(guaranteed), code(burstable))
		if diff := cmp.Diff([]fwk.Code{fwk.UnschedulableAndUnresolvable, fwk.Skip, fwk.Success, fwk.Skip}, got); diff != "" {
			t.Errorf("guaranteed and burstable, before and after (-want,+got)\n%s", diff)
		}
	})
}
