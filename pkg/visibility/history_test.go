// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/internal/testing/simulated"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/sandbox"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

var queues = volcano.SchemeGroupVersion.WithResource("queues")

// historyOf is the history of a queue; nil if there is none.
func historyOf(views *visibility.Views, name string) *v1alpha1.QueueHistoryStatus {
	for _, h := range views.Histories() {
		if h.Name == name {
			return &h.Status
		}
	}
	return nil
}

// sample takes a sample after so long.
func sample(t *testing.T, box *sandbox.Sandbox, views *visibility.Views, after time.Duration) {
	t.Helper()
	box.Clock.Step(after)
	if err := views.SampleOnce(); err != nil {
		t.Fatal(err)
	}
}

func TestWhatQueuesHeldIsRemembered(t *testing.T) {
	box := simulated.Settled(t, world)
	views := viewsOf(box)
	if got := views.Histories(); len(got) != 0 {
		t.Fatalf("before the first sample there are histories of %d queues", len(got))
	}
	sample(t, box, views, time.Minute)
	if err := box.API.Remove(memory.Pods, "ml", "runs-0"); err != nil {
		t.Fatal(err)
	}
	if err := box.Deliver(); err != nil {
		t.Fatal(err)
	}
	sample(t, box, views, visibility.SampleEvery)
	sample(t, box, views, visibility.SampleEvery)
	narrow := historyOf(views, "narrow")
	if narrow == nil || len(narrow.Samples) != 3 {
		t.Fatalf("the history of queue narrow is %+v, want 3 samples", narrow)
	}
	for i, held := range []string{"2", "0", "0"} {
		at := simulated.Noon.Add(time.Minute + time.Duration(i)*visibility.SampleEvery)
		if s := narrow.Samples[i]; cpus(s.Held) != held || !s.Time.Time.Equal(at) {
			t.Errorf("sample %d is of %v, and has %s cpus; want %v, %s", i, s.Time, cpus(s.Held), at, held)
		}
	}
	if got := narrow.AsOf.Time; !got.Equal(narrow.Samples[2].Time.Time) {
		t.Errorf("it is as of %v, want the time of the last sample", got)
	}
}

// A sample has what the view of the queue has.
func TestWhatQueuesWereDueIsRemembered(t *testing.T) {
	box := simulated.Settled(t, world)
	views := viewsOf(box)
	sample(t, box, views, time.Minute)
	for _, q := range views.Queues() {
		h := historyOf(views, q.Name)
		if h == nil || len(h.Samples) != 1 || h.Parent != q.Status.Parent {
			t.Errorf("the history of queue %s is %+v, want one sample below %q", q.Name, h, q.Status.Parent)
			continue
		}
		if cpus(h.Samples[0].Due) != cpus(q.Status.Due) || cpus(h.Samples[0].Held) != cpus(q.Status.Held) {
			t.Errorf("queue %s held %s of %s, and the sample says %s of %s",
				q.Name, cpus(q.Status.Held), cpus(q.Status.Due), cpus(h.Samples[0].Held), cpus(h.Samples[0].Due))
		}
	}
}

// A queue that is gone is shown as long as there are samples of it, and no sample is older than two hours.
func TestSamplesAreForgotten(t *testing.T) {
	box := simulated.Settled(t, world)
	views := viewsOf(box)
	sample(t, box, views, time.Minute)
	first := historyOf(views, "idle").Samples[0].Time
	if err := box.API.Remove(queues, "", "idle"); err != nil {
		t.Fatal(err)
	}
	if err := box.Deliver(); err != nil {
		t.Fatal(err)
	}
	for range visibility.Moments - 1 {
		sample(t, box, views, visibility.SampleEvery)
	}
	idle, lab := historyOf(views, "idle"), historyOf(views, "lab")
	if idle == nil || len(idle.Samples) != 1 || !idle.Samples[0].Time.Equal(&first) {
		t.Errorf("the history of a queue that is gone is %+v, want its one sample", idle)
	}
	if len(lab.Samples) != visibility.Moments {
		t.Errorf("queue lab has %d samples, want %d", len(lab.Samples), visibility.Moments)
	}
	sample(t, box, views, visibility.SampleEvery)
	if idle := historyOf(views, "idle"); idle != nil {
		t.Errorf("a queue that has been gone for two hours has the history %+v", idle)
	}
	if lab = historyOf(views, "lab"); len(lab.Samples) != visibility.Moments || lab.Samples[0].Time.Equal(&first) {
		t.Errorf("queue lab has %d samples from %v on, want %d without the first", len(lab.Samples), lab.Samples[0].Time, visibility.Moments)
	}
}

// Of very many queues those nearest to the root are sampled.
func TestQueuesNearTheRootAreSampled(t *testing.T) {
	var b strings.Builder
	b.WriteString("{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '1', memory: 32Gi, pods: '110'}}}\n")
	b.WriteString("---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: zoo}, spec: {weight: 1}}\n")
	for i := range visibility.MostSampled + 10 {
		fmt.Fprintf(&b, "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: a%03d}, spec: {weight: 1, parent: zoo}}\n", i)
	}
	box := simulated.Settled(t, b.String())
	views := viewsOf(box)
	sample(t, box, views, time.Minute)
	if got := len(views.Histories()); got != visibility.MostSampled {
		t.Errorf("%d queues have histories, want %d", got, visibility.MostSampled)
	}
	for name, want := range map[string]bool{"root": true, "zoo": true, "default": true, "a000": true, fmt.Sprintf("a%03d", visibility.MostSampled+9): false} {
		if got := historyOf(views, name) != nil; got != want {
			t.Errorf("queue %s has a history: %t, want %t", name, got, want)
		}
	}
}

// The sampler lives by the clock of its source, and ends with its context.
func TestSamplesAreTakenByTheClock(t *testing.T) {
	box := simulated.Settled(t, world)
	synctest.Test(t, func(t *testing.T) {
		clock := clocktesting.NewFakeClock(simulated.Noon)
		views := visibility.New(visibility.Source{State: box.Core.State, Dispatch: box.Core.Dispatcher.View(), Ledger: box.Core.Evictions.Ledger, Clock: clock})
		ctx, cancel := context.WithCancel(t.Context())
		go views.Sample(ctx)
		for i := range 3 {
			synctest.Wait()
			if got := len(historyOf(views, "lab").Samples); got != i+1 {
				t.Errorf("after %s there are %d samples, want %d", clock.Since(simulated.Noon), got, i+1)
			}
			clock.Step(visibility.SampleEvery - visibility.Freshness)
			synctest.Wait()
			if got := len(historyOf(views, "lab").Samples); got != i+1 {
				t.Errorf("too early there are %d samples, want %d", got, i+1)
			}
			clock.Step(visibility.Freshness)
		}
		cancel()
		// The bubble fails unless all that was started in it ends.
		synctest.Wait()
	})
}

// Whatever goes wrong while a sample is taken is an error: the scheduler goes on.
func TestNoSampleStopsTheScheduler(t *testing.T) {
	views := visibility.New(visibility.Source{Clock: clocktesting.NewFakeClock(simulated.Noon)})
	if err := views.SampleOnce(); err == nil || !strings.Contains(err.Error(), "taking a sample of queues") {
		t.Errorf("a sample without a dispatcher is answered by %v", err)
	}
	if got := views.Histories(); len(got) != 0 {
		t.Errorf("it has left %+v", got)
	}
}
