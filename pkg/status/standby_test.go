// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanofake "volcano.sh/apis/pkg/client/clientset/versioned/fake"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestAStandbyRemembersNoJobs: what changes while another process leads is looked at once, when this one takes over.
func TestAStandbyRemembersNoJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := model.NewState()
		groups := volcanofake.NewSimpleClientset()
		w, err := New(groups, fake.NewClientset(), state)
		if err != nil {
			t.Fatal(err)
		}
		state.Observe(w.Notify)
		for i := range 1000 {
			key := model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: fmt.Sprintf("g%d", i)}
			object := &volcano.PodGroup{}
			object.Namespace, object.Name = key.Namespace, key.Name
			state.UpsertGroup(key, &model.Group{MinMember: 1, Object: object})
			if i > 0 {
				state.DeleteGroup(key)
			}
		}
		time.Sleep(2 * collected)
		if n := w.queue.Len(); n > 0 {
			t.Errorf("%d jobs wait to be written by a standby", n)
		}
		go w.Run(t.Context())
		time.Sleep(2 * collected)
		var written []string
		for _, a := range groups.Actions() {
			if a.GetResource().Resource == "podgroups" {
				written = append(written, a.GetVerb()+"/"+a.GetSubresource())
			}
		}
		// The definition has no such PodGroup, so that it is looked for in both places.
		if want := []string{"patch/status", "patch/"}; !slices.Equal(written, want) {
			t.Errorf("the new leader writes %v, want the PodGroup that exists", written)
		}
	})
}
