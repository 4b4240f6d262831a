// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// Volcano's webhook refuses jobs while the queue "default" does not exist, and nobody else creates it.
func TestTheQueuesEveryClusterHas(t *testing.T) {
	listFirst(t)
	trouble := apierrors.NewInternalError(errors.New("etcd is away"))
	exists := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "queues"}, "")
	for name, tc := range map[string]struct {
		// missing are queues that the model does not know of.
		missing []string
		// answers are what the API server says to the first requests; it creates queues after that.
		answers []error
		// want are the requests to create a queue.
		want []string
	}{
		"both are there":                      {nil, nil, nil},
		"one is missing":                      {[]string{"default"}, nil, []string{"default"}},
		"both are missing":                    {[]string{"root", "default"}, nil, []string{"root", "default"}},
		"an API server in trouble comes back": {[]string{"root", "default"}, []error{trouble, trouble}, []string{"root", "root", "root", "default"}},
		"another scheduler was faster":        {[]string{"root", "default"}, []error{exists, exists}, []string{"root", "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				for _, name := range tc.missing {
					d.check(d.groups.SchedulingV1beta1().Queues().Delete(t.Context(), name, metav1.DeleteOptions{}))
				}
				synctest.Wait()
				var asked []string
				d.groups.PrependReactor("create", "queues", func(a clienttesting.Action) (bool, runtime.Object, error) {
					asked = append(asked, a.(clienttesting.CreateAction).GetObject().(*volcano.Queue).Name)
					if len(asked) > len(tc.answers) {
						return false, nil, nil
					}
					return true, nil, tc.answers[len(asked)-1]
				})
				go d.Run(t.Context())
				time.Sleep(time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, asked); diff != "" {
					t.Errorf("(-want,+got)\n%s", diff)
				}
			})
		})
	}
}

func TestTheDefaultQueueIsVolcanos(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		for _, name := range []string{"root", "default"} {
			d.check(d.groups.SchedulingV1beta1().Queues().Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
		synctest.Wait()
		go d.Run(t.Context())
		time.Sleep(time.Second)
		// spec is what Volcano's scheduler and webhook give these queues.
		type spec struct {
			Parent      string
			Weight      int32
			Reclaimable bool
		}
		got := map[string]spec{}
		list, err := d.groups.SchedulingV1beta1().Queues().List(t.Context(), metav1.ListOptions{})
		d.check(err)
		for _, q := range list.Items {
			got[q.Name] = spec{q.Spec.Parent, q.Spec.Weight, *q.Spec.Reclaimable}
		}
		want := map[string]spec{"root": {Weight: 1}, "default": {Parent: "root", Weight: 1, Reclaimable: true}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
	})
}
