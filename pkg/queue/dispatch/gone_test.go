// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestAJobDoesNotRestForAPodThatIsGone: somebody deletes pods while they are bound. The others of their job are placed at once.
func TestAJobDoesNotRestForAPodThatIsGone(t *testing.T) {
	for name, gone := range map[string]bool{"gone": true, "still there": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				d.Between()
				d.state.UpsertGroup(keyOf("a"), &model.Group{UID: "a", Queue: model.DefaultQueue, MinMember: 1})
				for i := range 3 {
					pod := memberOf("a", i, "1")
					d.state.UpsertPod(pod)
					d.want(pod.UID)
					d.begin(pod.UID)
					d.plan(pod.UID)
					d.place(pod.UID)
					d.Between()
					if gone {
						d.state.DeletePod(pod.UID)
					}
					d.unreserve("a", pod.UID)
					d.Failed(pod.UID, keyOf("a"), errors.New("not bound"))
					if !gone {
						break
					}
				}
				if !gone {
					// The first failure is followed by another attempt at once, the second by a rest.
					d.want("a-0")
					d.begin("a-0")
					d.plan("a-0")
					d.place("a-0")
					d.Between()
					d.unreserve("a", "a-0")
					d.Failed("a-0", keyOf("a"), errors.New("not bound"))
					d.wantWithin(100*time.Millisecond, "a-0")
				}
			})
		})
	}
}
