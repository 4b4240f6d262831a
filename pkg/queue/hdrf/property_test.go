// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package hdrf_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/queue/hdrf"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

var (
	queues = []string{"q0", "q1", "q2", "q3", "q4", "q5"}
	keys   = []string{"j0", "j1", "j2", "j3", "j4", "j5", "j6", "j7"}
	// places are short ones, so that paths are equal, lead into each other, and repeat names on different branches.
	places = []string{"root", "root/a", "root/b", "root/a/x", "root/a/y", "root/b/x", "root/a/x/z", "root/x"}
)

// vector draws small amounts, so that ties and exhaustion are frequent. Zeros are named, left out, or both.
func vector(t *rapid.T, label string, most int64) resource.Vector {
	var v resource.Vector
	for _, name := range names {
		if n := rapid.Int64Range(-1, most).Draw(t, label+" "+string(name)); n >= 0 {
			v = append(v, resource.Amount{Name: name, Value: n})
		}
	}
	return v
}

func path(t *rapid.T) hdrf.Path {
	p := hdrf.Path{Names: strings.Split(rapid.SampledFrom(places).Draw(t, "path"), "/")}
	for range p.Names {
		p.Weights = append(p.Weights, rapid.SampledFrom([]float64{1, 1, 2, 2.5}).Draw(t, "weight"))
	}
	return p
}

// changes are the changes of a tree and its reference.
func changes(tree *hdrf.Tree, w *reference) map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"SetTotal": func(t *rapid.T) {
			w.total = vector(t, "total", 30)
			tree.SetTotal(w.total)
		},
		"SetPaths": func(t *rapid.T) {
			paths := map[string]hdrf.Path{}
			for _, queue := range queues {
				if rapid.IntRange(0, 4).Draw(t, queue+" has a path") > 0 {
					paths[queue] = path(t)
				}
			}
			w.paths = paths
			tree.SetPaths(paths)
		},
		"SetJob":  func(t *rapid.T) { setJob(t, tree, w) },
		"SetJob2": func(t *rapid.T) { setJob(t, tree, w) },
		"RemoveJob": func(t *rapid.T) {
			key := rapid.SampledFrom(keys).Draw(t, "job")
			delete(w.jobs, key)
			tree.RemoveJob(key)
		},
	}
}

func setJob(t *rapid.T, tree *hdrf.Tree, w *reference) {
	key := rapid.SampledFrom(keys).Draw(t, "job")
	c := claim{queue: rapid.SampledFrom(queues).Draw(t, "queue"), allocated: vector(t, "allocated", 5)}
	c.request = c.allocated.Clone()
	c.request.Add(vector(t, "waiting", 2))
	w.jobs[key] = c
	tree.SetJob(key, c.queue, c.allocated, c.request)
}

// near is the tolerance for amounts that were found by other additions.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func TestSharesAreThoseOfTheFormulasAfterAnyChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, w := hdrf.New(), &reference{jobs: map[string]claim{}}
		actions := changes(tree, w)
		actions[""] = func(t *rapid.T) {
			if rapid.IntRange(0, 2).Draw(t, "looked at") == 0 {
				return // Several changes come together.
			}
			got := tree.Branches()
			if diff := gocmp.Diff(w.branches(), slices.Sorted(maps.Keys(got))); diff != "" {
				t.Fatalf("branches (-want,+got):\n%s", diff)
			}
			for at, b := range got {
				held, share, saturated := w.branch(at)
				if !near(b.Share, share) || b.Saturated != saturated {
					t.Fatalf("branch %q: share %g, saturated %t; want %g, %t", at, b.Share, b.Saturated, share, saturated)
				}
				for _, name := range names {
					if !near(b.Allocated.Get(name), held[name]) {
						t.Fatalf("branch %q counts as %g of %s, want %g", at, b.Allocated.Get(name), name, held[name])
					}
				}
			}
			for _, x := range queues {
				for _, y := range queues {
					if got, want := tree.Compare(x, y), w.compare(got, x, y); sign(got) != want {
						t.Fatalf("%s and %s at %q and %q compare as %d, want %d", x, y, w.place(x), w.place(y), got, want)
					}
				}
			}
		}
		t.Repeat(actions)
	})
}

// compare is QueueOrder of the reference on given shares; of equal queues the one with the shorter path goes first.
func (w *reference) compare(branches map[string]hdrf.Branch, x, y string) int {
	p, q := w.paths[x].Names, w.paths[y].Names
	for level := 2; level <= min(len(p), len(q)); level++ {
		a, b := branches["/"+strings.Join(p[1:level], "/")], branches["/"+strings.Join(q[1:level], "/")]
		switch {
		case a.Saturated && !b.Saturated:
			return 1
		case !a.Saturated && b.Saturated:
			return -1
		case a.Share/a.Weight != b.Share/b.Weight:
			return cmp.Compare(a.Share/a.Weight, b.Share/b.Weight)
		}
	}
	return cmp.Compare(max(1, len(p)), max(1, len(q)))
}

func TestQueuesHaveOneOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, w := hdrf.New(), &reference{jobs: map[string]claim{}}
		actions := changes(tree, w)
		actions[""] = func(t *rapid.T) {
			// The name stands for whatever decides between equal queues.
			whole := func(x, y string) int { return cmp.Or(tree.Compare(x, y), cmp.Compare(x, y)) }
			for _, x := range queues {
				for _, y := range queues {
					if sign(tree.Compare(x, y)) != -sign(tree.Compare(y, x)) {
						t.Fatalf("%s and %s compare as %d and as %d", x, y, tree.Compare(x, y), tree.Compare(y, x))
					}
					for _, z := range queues {
						if whole(x, y) < 0 && whole(y, z) < 0 && whole(x, z) >= 0 {
							t.Fatalf("%s goes before %s, that before %s, and that before the first", x, y, z)
						}
					}
				}
			}
		}
		t.Repeat(actions)
	})
}

func TestAddingAndRemovingAJobChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, w := hdrf.New(), &reference{jobs: map[string]claim{}}
		actions := changes(tree, w)
		actions["visit"] = func(t *rapid.T) {
			before := fmt.Sprint(tree.Branches())
			tree.SetJob("visitor", rapid.SampledFrom(queues).Draw(t, "queue"), vector(t, "allocated", 5), vector(t, "request", 9))
			if rapid.Bool().Draw(t, "looked at") {
				tree.Branches()
			}
			tree.RemoveJob("visitor")
			if after := fmt.Sprint(tree.Branches()); after != before {
				t.Fatalf("before %s\nafter %s", before, after)
			}
		}
		t.Repeat(actions)
	})
}

func TestACloneIsATreeOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, w := hdrf.New(), &reference{jobs: map[string]claim{}}
		actions := changes(tree, w)
		actions["clone"] = func(t *rapid.T) {
			look := func(tree *hdrf.Tree) string {
				said := fmt.Sprint(tree.Branches())
				for _, x := range queues {
					for _, y := range queues {
						said += fmt.Sprint(tree.Compare(x, y), tree.Behind(x, y), " ")
					}
				}
				return said
			}
			clone := tree.Clone()
			kept := tree.Clone()
			before := look(tree)
			if got := look(clone); got != before {
				t.Fatalf("the clone says\n%s\nthe tree\n%s", got, before)
			}
			// What the one is told does not reach the other.
			key, queue := rapid.SampledFrom(keys).Draw(t, "job"), rapid.SampledFrom(queues).Draw(t, "queue")
			holds, wants := vector(t, "allocated", 5), vector(t, "request", 9)
			clone.SetJob(key, queue, holds, wants)
			look(clone)
			if got := look(tree); got != before {
				t.Fatalf("the clone changed the tree from\n%s\nto\n%s", before, got)
			}
			setJob(t, tree, w)
			look(tree)
			if got := look(kept); got != before {
				t.Fatalf("the tree changed its clone from\n%s\nto\n%s", before, got)
			}
		}
		t.Repeat(actions)
	})
}
