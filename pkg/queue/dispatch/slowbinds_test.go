// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// TestANamespaceWhoseBindsAreSlowHasNoTurns: jobs of others that ask for the same have theirs. Jobs that come meanwhile say why they wait, and all have
// their turns again when half of the pods are bound.
func TestANamespaceWhoseBindsAreSlowHasNoTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		slow := model.JobKey{Source: model.FromVolcano, Namespace: "slow", Name: "slow"}
		submit := func(name string, age int) {
			key := slow
			key.Name = name
			d.state.UpsertGroup(key, &model.Group{UID: types.UID("slow/" + name), Queue: model.DefaultQueue, MinMember: 1, Created: epoch.Add(-time.Hour)})
			pod := memberOf(name, 0, "1")
			pod.Namespace, pod.UID = slow.Namespace, types.UID("slow/"+name+"-0")
			d.state.UpsertPod(pod)
			// It comes after one in the other namespace that asks for the same.
			d.submit(name, 1, age, "1")
		}
		submit("a", 2)
		d.want("slow/a-0")
		// They are those of two profiles.
		d.SlowBinds(slow.Namespace, dispatch.MostAside-1)
		d.SlowBinds(slow.Namespace, 1)
		d.plan("slow/a-0")
		d.place("slow/a-0")
		d.want("a-0")
		d.plan("a-0")
		d.place("a-0")
		submit("b", 1)
		d.want("b-0")
		d.plan("b-0")
		d.place("b-0")
		d.want()
		key := slow
		key.Name = "b"
		says := func(key model.JobKey, pods string) {
			t.Helper()
			if reason := d.lastOf(key); reason.Kind != model.SlowBinds || !strings.Contains(reason.Message, pods+" pods of namespace slow have nodes") {
				t.Errorf("the job waits because of %+v, want %s pods of its namespace", reason, pods)
			}
		}
		says(key, "256")
		d.SlowBinds(slow.Namespace, dispatch.LeastAside-dispatch.MostAside)
		d.want()
		d.Notify(model.Change{Jobs: []model.JobKey{key}})
		says(key, "128")
		d.SlowBinds(slow.Namespace, -1)
		d.want("slow/b-0")
		d.SlowBinds(slow.Namespace, dispatch.MostAside-dispatch.LeastAside)
		d.plan("slow/b-0")
		d.place("slow/b-0")
		submit("c", 0)
		d.want("slow/c-0")
	})
}
