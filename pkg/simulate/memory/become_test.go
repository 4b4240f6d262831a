// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory/fakes"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// TestASeriesTakesBackWhatOthersWrote: what was bound is another pod again, what was not touched is the same, and what was added is gone.
func TestASeriesTakesBackWhatOthersWrote(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	runs, waits := pod("runs").Node("n").Obj(), pod("waits").UID("b").Obj()
	series := memory.NewSeries(api)
	begin := []scenario.Object{node, runs, waits}
	told := 0
	become := func(objects ...scenario.Object) {
		t.Helper()
		check(t, series.Become(objects, func() error { told++; return nil }))
	}
	become(begin...)
	stored := func(name string) *corev1.Pod {
		t.Helper()
		o, err := api.Get(memory.Pods, "team", name)
		check(t, err)
		return o.(*corev1.Pod)
	}
	first := stored("waits")
	check(t, fakes.Kube(api).CoreV1().Pods("team").Bind(t.Context(), binding("waits", "n"), metav1.CreateOptions{}))
	become(append(begin, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "more"}})...)
	if again := stored("waits"); again.Spec.NodeName != "" || again.UID == first.UID {
		t.Errorf("the pod that was bound is on node %q and has the UID %s", again.Spec.NodeName, again.UID)
	}
	last := first.UID
	for range 3 {
		become(begin...)
		if now := stored("waits").UID; now == last || now <= "a" || now <= "a-c" || now >= "b-c" || now >= "c" {
			t.Errorf("after %s the pod that waits has the UID %s, want another one that compares to others as the first did", last, now)
		}
		last = stored("waits").UID
	}
	before := stored("runs").ResourceVersion
	become(begin...)
	if after := stored("runs").ResourceVersion; after != before {
		t.Errorf("the pod that runs was written, though nobody had touched it: version %s, then %s", before, after)
	}
	if nodes := api.Objects(corev1.SchemeGroupVersion.WithResource("nodes")); len(nodes) != 1 {
		t.Errorf("there are %d nodes, want the one of the beginning", len(nodes))
	}
	if told != 5 {
		t.Errorf("clients were told %d times of what is gone, want 5", told)
	}
}

// place is a kind and a name.
type place struct{ kind, name string }

// history is a series of sets, with what was put where and what is there.
type history struct {
	api    *memory.API
	series *memory.Series
	// put is what the last set had, and the version with which it was stored.
	put map[place]stored
}

type stored struct {
	object  scenario.Object
	version string
}

var nodes = corev1.SchemeGroupVersion.WithResource("nodes")

func placeOf(o scenario.Object) place {
	if _, ok := o.(*corev1.Node); ok {
		return place{"node", o.GetName()}
	}
	return place{"pod", o.GetName()}
}

// held is what the API has.
func (h *history) held() map[place]scenario.Object {
	all := map[place]scenario.Object{}
	for _, o := range slices.Concat(h.api.Objects(nodes), h.api.Objects(memory.Pods)) {
		all[placeOf(o)] = o
	}
	return all
}

// become goes on to the next set, and compares with what has to be there by what was there before.
func (h *history) become(t *rapid.T, objects []scenario.Object) {
	before, told := h.held(), 0
	if err := h.series.Become(objects, func() error { told++; return nil }); err != nil {
		t.Fatal(err)
	}
	after, put := h.held(), map[place]stored{}
	if len(after) != len(objects) {
		t.Fatalf("%d objects are held, want %d", len(after), len(objects))
	}
	gone := slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(at place) bool { return after[at] == nil })
	for _, o := range objects {
		at := placeOf(o)
		was, is := before[at], after[at]
		if is == nil || is.GetLabels()["variant"] != o.GetLabels()["variant"] {
			t.Fatalf("%v is %v, want %v", at, is, o)
		}
		put[at] = stored{o, is.GetResourceVersion()}
		pod, isPod := is.(*corev1.Pod)
		if isPod && pod.Spec.NodeName != o.(*corev1.Pod).Spec.NodeName {
			t.Fatalf("pod %s is on node %q, want %q", pod.Name, pod.Spec.NodeName, o.(*corev1.Pod).Spec.NodeName)
		}
		if was == nil {
			continue
		}
		same := h.put[at].object == o && h.put[at].version == was.GetResourceVersion()
		waits := isPod && pod.Spec.NodeName == ""
		if kept := is.GetResourceVersion() == was.GetResourceVersion(); kept != (same && !waits) {
			t.Fatalf("%v is left alone: %t; it was as it is wanted: %t, and waits: %t", at, kept, same, waits)
		}
		another := isPod && (waits || !same)
		if is.GetUID() == was.GetUID() == another {
			t.Fatalf("%v has the UID %s, and had %s; want another one: %t", at, is.GetUID(), was.GetUID(), another)
		}
		gone = gone || another
	}
	if (told == 1) != gone || told > 1 {
		t.Fatalf("clients were told %d times of what is gone; something is: %t", told, gone)
	}
	h.put = put
}

func sorted(set map[place]scenario.Object) []scenario.Object {
	return slices.SortedFunc(maps.Values(set), func(a, b scenario.Object) int {
		x, y := placeOf(a), placeOf(b)
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.name, y.name))
	})
}

// TestASeriesIsThatOfSetsPutOneByOne: whatever is in the sets, in whatever form, and whatever others write in between, what is there afterwards is what
// was asked for, and what was there already is left alone.
func TestASeriesIsThatOfSetsPutOneByOne(t *testing.T) {
	t.Parallel()
	const names, variants = 4, 2
	// The same objects are given again and again, and others of their names.
	var pool []scenario.Object
	for i := range names {
		for v := range variants {
			labels := map[string]string{"variant": strconv.Itoa(v)}
			pool = append(pool,
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: labels}},
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("runs%d", i), Labels: labels}, Spec: corev1.PodSpec{NodeName: "n0"}},
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("waits%d", i), Labels: labels}})
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		api := newAPI(t)
		if rapid.Bool().Draw(rt, "something is there") {
			check(t, api.Create(memory.Pods, pod("stray").Node("n0").Obj(), "team"))
		}
		h := &history{api: api, series: memory.NewSeries(api)}
		for range rapid.IntRange(1, 8).Draw(rt, "sets") {
			set := map[place]scenario.Object{}
			for _, o := range rapid.SliceOfN(rapid.SampledFrom(pool), 0, 12).Draw(rt, "set") {
				set[placeOf(o)] = o
			}
			h.become(rt, sorted(set))
			for _, o := range sorted(h.held()) {
				in := memory.Pods
				if placeOf(o).kind == "node" {
					in = nodes
				}
				switch rapid.SampledFrom([]string{"leave", "leave", "write", "remove"}).Draw(rt, "what others do") {
				case "write":
					written := o.DeepCopyObject().(scenario.Object)
					written.SetAnnotations(map[string]string{"written": "by others"})
					check(t, api.Update(in, written, o.GetNamespace()))
				case "remove":
					check(t, api.Remove(in, o.GetNamespace(), o.GetName()))
				}
			}
		}
	})
}
