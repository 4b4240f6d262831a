// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clienttesting "k8s.io/client-go/testing"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// TestPodsThatAreToldSlowlyHoldUpNobody: the states of all PodGroups are written while no pod can be told why it waits, and the pods are
// told in the end. It runs in real time: requests that hang hold a lock of the fake API server.
func TestPodsThatAreToldSlowlyHoldUpNobody(t *testing.T) {
	listFirst(t)
	const gangs = 12
	key := func(i int) model.JobKey {
		return model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: fmt.Sprintf("gang-%d", i)}
	}
	var objects []runtime.Object
	for i := range gangs {
		name := key(i).Name
		objects = append(objects,
			podGroup(1, func(g *volcano.PodGroup) { g.Name, g.UID = name, types.UID(name) }),
			newPod(name+"-0", func(p *corev1.Pod) { p.Annotations = map[string]string{model.GroupNameAnnotation: name} }))
	}
	d := open(t, objects...)
	goOn := make(chan struct{})
	d.kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-goOn
		return false, nil, nil
	})
	for i := range gangs {
		d.Waits(key(i), noRoom)
	}
	eventually := func(what string, done func() int) {
		t.Helper()
		n := 0
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
			n = done()
			return n == gangs, nil
		})
		if err != nil {
			t.Errorf("%d of %d %s: %v", n, gangs, what, err)
		}
	}
	eventually("PodGroups are said to wait", func() (n int) {
		list, err := d.groups.SchedulingV1beta1().PodGroups("ns").List(t.Context(), metav1.ListOptions{})
		d.check(err)
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				if c.Type == volcano.PodGroupUnschedulableType {
					n++
				}
			}
		}
		return n
	})
	close(goOn)
	eventually("pods are told", func() int { return len(d.scheduledConditions()) })
}

// TestATellerPauses: for three times as long as its last write took, for 5 s at most, or until the writer ends.
func TestATellerPauses(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		defer d.Close()
		begun := time.Now()
		status.Pause(d.Writer, t.Context(), 10*time.Millisecond)
		if took := time.Since(begun); took != 30*time.Millisecond {
			t.Errorf("after a write of 10 ms it pauses for %s, want 30 ms", took)
		}
		status.Pause(d.Writer, t.Context(), 29*time.Second)
		if took := time.Since(begun); took > 6*time.Second {
			t.Errorf("after a write of 29 s it pauses for %s, want 5 s", took)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		status.Pause(d.Writer, ended, time.Hour)
		if took := time.Since(begun); took > time.Hour {
			t.Error("it pauses though the writer ends")
		}
	})
}
