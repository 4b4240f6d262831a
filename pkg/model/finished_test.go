// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestAPodThatHasFinishedDoesNotLiveAgain: live and finished pods are watched apart, and either watch may be late. A gang's pod goes through its life
// in each order in which the two may tell of it.
func TestAPodThatHasFinishedDoesNotLiveAgain(t *testing.T) {
	type news struct {
		name string
		tell func(*model.State)
	}
	upsert := func(name string, options ...func(*corev1.Pod)) news {
		return news{name, func(s *model.State) { s.UpsertPod(newPod("p", append(options, in("train"), asking("cpu", "1"))...)) }}
	}
	live := []news{
		upsert("waits"), upsert("runs", on("node-0"), running), upsert("terminates", on("node-0"), running, terminating),
		{"left", func(s *model.State) { s.LeavePod("p") }},
	}
	ended := []news{
		upsert("finished", on("node-0"), succeeded),
		{"deleted", func(s *model.State) { s.DeleteFinished("p") }},
	}
	var try func(told, live, ended []news)
	try = func(told, live, ended []news) {
		for i, from := range [][]news{live, ended} {
			switch {
			case len(from) == 0:
			case i == 0:
				try(append(told[:len(told):len(told)], from[0]), live[1:], ended)
			default:
				try(append(told[:len(told):len(told)], from[0]), live, ended[1:])
			}
		}
		if len(live)+len(ended) > 0 {
			return
		}
		var names []string
		for _, n := range told {
			names = append(names, n.name)
		}
		t.Run(strings.Join(names, ", "), func(t *testing.T) {
			state := model.NewState()
			state.AddScheduler(batch)
			state.UpsertNode(newNode("node-0", having("cpu", "8")))
			finished, deleted, known := false, false, false
			for _, n := range told {
				n.tell(state)
				finished, deleted = finished || n.name == "finished", deleted || n.name == "deleted"
				// Of a pod that is gone before anybody has told that it lives nothing is kept.
				known = known || !deleted && n.name != "finished"
				if used := state.Totals().Used.Get(corev1.ResourceCPU); finished && known && used != 0 {
					t.Errorf("%d millicores are used once it has finished, after %q", used, n.name)
				}
			}
			if task := state.Task("p"); task != nil {
				t.Errorf("it is gone, and still %v", task.Status)
			}
			if used := state.Totals().Used.Get(corev1.ResourceCPU); used != 0 {
				t.Errorf("%d millicores are used when it is gone", used)
			}
		})
	}
	try(nil, live, ended)
}
