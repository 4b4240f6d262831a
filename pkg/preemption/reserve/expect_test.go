// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestWhoIsExpected checks whose room a pod gets that has come: that of one of its controller which asked for the same, once.
func TestWhoIsExpected(t *testing.T) {
	t.Parallel()
	pod := func(name, owner, cpu string) *model.Task {
		p := builders.Pod("default", name).Req(builders.CPU(cpu)).Obj()
		p.UID = types.UID(name)
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", UID: types.UID(owner), Controller: new(true)}}
		}
		return model.NewTask(p)
	}
	var x expectations
	for _, moved := range []struct{ task, owner, cpu, node string }{
		{"small", "web", "1", "n1"}, {"large", "web", "2", "n2"}, {"other", "db", "1", "n3"},
	} {
		x.add(expectation{task: pod(moved.task, moved.owner, moved.cpu).ExpectedOn(moved.node), controller: types.UID(moved.owner)})
	}
	for _, c := range []struct{ comes, owner, cpu, node string }{
		{"bare", "", "1", ""},
		{"stranger", "job", "1", ""},
		{"changed", "web", "3", ""},
		{"second", "web", "2", "n2"},
		{"first", "web", "1", "n1"},
		{"one-more", "web", "1", ""},
	} {
		e, ok := x.take(pod(c.comes, c.owner, c.cpu))
		if ok != (c.node != "") || ok && e.task.Nominated != c.node {
			t.Errorf("pod %s of %q has the room of %+v, want that on %q", c.comes, c.owner, e.task, c.node)
		}
	}
	if dropped := x.drop(func(expectation) bool { return true }); !slices.Equal(dropped, []types.UID{model.ExpectedUID("other")}) || !x.none() {
		t.Errorf("expected were %v, want the one of db", dropped)
	}
}
