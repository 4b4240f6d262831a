// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/demo"
	"github.com/caldera-scheduler/caldera/internal/demo/history"
)

// TestTheExamplesGoAsTheySay plays them in a bubble with a time of its own, and compares what became of every pod with what manifests/examples say.
func TestTheExamplesGoAsTheySay(t *testing.T) {
	dir := t.TempDir()
	record := filepath.Join(dir, "run.json")
	out, err := os.Create(filepath.Join(dir, "screen"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // what is on it was read
	if err := demo.DivertLogs(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	// The scheduler asks for a signal to dump its cache at. What listens for all signals must not begin to in the bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	defer signal.Stop(signals)
	synctest.Test(t, func(t *testing.T) {
		s, err := newStage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		failed, err := demo.Play(t.Context(), s, out, demo.Options{Timeout: 2 * time.Minute, Clock: clock.RealClock{}, Record: record})
		if err != nil || failed != nil {
			t.Errorf("playing: %v, %v", err, failed)
		}
		s.strike()
		// What was sent may still be under way, and time stands still once this returns.
		time.Sleep(time.Minute)
	})
	checkScreen(t, out.Name())
	checkLives(t, record)
}

// checkScreen looks for what the screen must have said.
func checkScreen(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		" impossible  never    0\n",
		"8 together",
		"3 one by one",
		"impossible waits: 0/4 tasks in gang schedulable: insufficient nvidia.com/gpu, short by 64; 0/20 nodes are available for the next one: 20 Insufficient nvidia.com/gpu\n",
		"No gang was ever started in part.\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the screen does not say %q:\n%s", want, text)
		}
	}
	if !secondWaits.Match(text) {
		t.Errorf("the screen does not say why the second gang waits:\n%s", text)
	}
}

// secondWaits is the line of the gang for which there is no room yet: whether it is admitted before the other one has begun is by chance.
var secondWaits = regexp.MustCompile(`gang-[ab] +11 pending .* (insufficient nvidia\.com/gpu, short by 80|overused nvidia\.com/gpu \([0-9]+ used or promised, 88 asked for)`)

// checkLives checks what became of every pod.
func checkLives(t *testing.T, record string) {
	t.Helper()
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	var run history.Record
	if err := json.Unmarshal(text, &run); err != nil {
		t.Fatal(err)
	}
	lives := map[string]history.Lives{}
	var got []string
	for _, w := range run.Workloads {
		lives[w.Name] = w
		bound, ended := 0, 0
		for _, p := range w.Pods {
			if p.Bound > 0 {
				bound++
			}
			if p.Ended > 0 {
				ended++
			}
		}
		got = append(got, fmt.Sprintf("%s: %d pods, %d bound, %d ended, at first bound together: %d", w.Name, len(w.Pods), bound, ended, together(w)))
	}
	want := []string{
		"impossible: 4 pods, 0 bound, 0 ended, at first bound together: 0",
		"pytorch: 8 pods, 8 bound, 8 ended, at first bound together: 8",
		"gang-a: 11 pods, 11 bound, 11 ended, at first bound together: 11",
		"gang-b: 11 pods, 11 bound, 11 ended, at first bound together: 11",
		"elastic: 6 pods, 6 bound, 6 ended, at first bound together: 2",
		"web: 3 pods, 3 bound, 0 ended, at first bound together: 3",
		"render: 10 pods, 10 bound, 10 ended, at first bound together: 10",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("what became of the pods (-want,+got)\n%s", diff)
	}
	checkTurns(t, lives["gang-a"].Pods, lives["gang-b"].Pods)
}

// checkTurns checks two gangs, of which only one fits at a time. The second one may get no node before there is room for all of it. Either may be the
// first: they are created in the same second.
func checkTurns(t *testing.T, first, second []history.Life) {
	t.Helper()
	byBind := func(a, b history.Life) int { return cmp.Compare(a.Bound, b.Bound) }
	if byBind(slices.MinFunc(first, byBind), slices.MinFunc(second, byBind)) > 0 {
		first, second = second, first
	}
	ends := make([]int64, len(first))
	for i, p := range first {
		ends[i] = p.Ended
	}
	slices.Sort(ends)
	// The first one leaves 9 of 20 nodes at most.
	if begin := slices.MinFunc(second, byBind).Bound; begin < ends[1] {
		t.Errorf("the second gang got its first node after %d ms, when there was no room for it: the pods of the first one ended at %v", begin, ends)
	}
}

// together is how many pods of a workload were bound within a tenth of a second of the first one.
func together(w history.Lives) (n int) {
	first := int64(0)
	for _, p := range w.Pods {
		if p.Bound > 0 && (first == 0 || p.Bound < first) {
			first = p.Bound
		}
	}
	for _, p := range w.Pods {
		if p.Bound > 0 && p.Bound-first < 100 {
			n++
		}
	}
	return n
}

// TestNothingLinksAnAPIServer: to build it is what the first look is spared.
func TestNothingLinksAnAPIServer(t *testing.T) {
	t.Parallel()
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, heavy := range []string{"k8s.io/kubernetes/cmd/", "k8s.io/apiserver/pkg/server/options", "go.etcd.io/etcd/server", "sigs.k8s.io/kwok"} {
		for dep := range strings.Lines(string(list)) {
			if strings.HasPrefix(dep, heavy) {
				t.Errorf("it links %s", strings.TrimSpace(dep))
			}
		}
	}
}
