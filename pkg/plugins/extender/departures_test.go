// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package extender_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender"
)

// profile is the handle of a profile, of which the plugin asks the name only.
type profile struct {
	fwk.Handle
	name string
}

// ProfileName implements fwk.Handle.
func (p profile) ProfileName() string { return p.name }

// runs is a pod of a profile on node n.
func runs(name, scheduler string) *corev1.Pod {
	p := builders.Pod("team", name).Node("n").Phase(corev1.PodRunning).SchedulerName(scheduler).Obj()
	return p
}

// TestTheExtenderIsToldOfEvictions: who is to go, and who stays after all, each once and in this order; of nobody when the plugin has ended.
func TestTheExtenderIsToldOfEvictions(t *testing.T) {
	told := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Task struct {
				Name, NodeName string
				Status         int
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&q)
		told <- fmt.Sprintf("%s %s on %s status %d", strings.TrimPrefix(r.URL.Path, "/"), q.Task.Name, q.Task.NodeName, q.Task.Status)
		fmt.Fprint(w, "{}")
	}))
	defer server.Close()
	wants := func(want string) {
		t.Helper()
		select {
		case got := <-told:
			if got != want {
				t.Fatalf("was told %q, want %q", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("was not told %q", want)
		}
	}
	state := model.NewState()
	state.AddScheduler("volcano")
	state.AddScheduler("other")
	ctx, stop := context.WithCancel(t.Context())
	args := &config.ExtenderArgs{
		URLPrefix: server.URL, HTTPTimeout: metav1.Duration{Duration: time.Minute}, MaxScore: 1, AllocateFuncVerb: "allocate", DeallocateFuncVerb: "deallocate",
	}
	if _, err := extender.New(state, clock.RealClock{})(ctx, args, profile{name: "volcano"}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*corev1.Pod{runs("a", "volcano"), runs("b", "volcano"), runs("c", "other")} {
		state.UpsertPod(p)
	}
	state.Pipeline(nil, []types.UID{"a", "c"})
	wants("deallocate a on n status 64")
	state.Spare("a")
	wants("allocate a on n status 32")
	// One that is gone at once was to go all the same.
	state.Pipeline(nil, []types.UID{"b"})
	state.DeletePod("b")
	wants("deallocate b on n status 64")
	state.Pipeline(nil, []types.UID{"a"})
	wants("deallocate a on n status 64")
	going := runs("a", "volcano")
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	state.UpsertPod(going)
	state.DeletePod("a")
	// What comes next shows that nothing was told of the end.
	state.UpsertPod(runs("d", "volcano"))
	state.Pipeline(nil, []types.UID{"d"})
	wants("deallocate d on n status 64")
	stop()
	state.UpsertPod(runs("e", "volcano"))
	state.Pipeline(nil, []types.UID{"e"})
	select {
	case got := <-told:
		t.Errorf("was told %q when the plugin had ended", got)
	case <-time.After(50 * time.Millisecond):
	}
}
