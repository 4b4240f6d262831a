// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

const gpu = "nvidia.com/gpu"

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// holder is a job that holds some GPUs and asks for more.
func holder(i int, queue string, holds, asks int64) *model.Job {
	job := &model.Job{Key: keyOf(i), Queue: queue, Group: &model.Group{MinMember: 1}, Admitted: true}
	job.Usage.Allocated = resource.Vector{{Name: gpu, Value: holds}}
	job.Usage.Requested = resource.Vector{{Name: gpu, Value: holds + asks}}
	return job
}

// sixteen is the book of a cluster of 16 GPUs and queues of equal weight that deserve 8, in which what they held counts.
func sixteen(mode account.Mode, r account.Recency, queues ...string) *account.Book {
	b := account.NewBook(mode)
	b.Count(r)
	b.SetCluster(resource.Vector{{Name: gpu, Value: 16}})
	for _, name := range queues {
		b.SetQueue(name, &model.Queue{Name: name, Weight: 1, Deserved: resource.Vector{{Name: gpu, Value: 8}}})
	}
	return b
}

// average is what a queue has held, by its own count.
func average(b *account.Book, queue string) float64 {
	kept, _ := b.Recent(b.Queue(queue), model.Recent{})
	return kept.Average.Get(gpu)
}

// The example of design section 5: A holds 16 for two hours, then B asks for them.
func TestDuesFollowWhatQueuesHaveHeld(t *testing.T) {
	b := sixteen(account.Proportion, account.Recency{HalfLife: time.Hour, Pull: 2}, "a", "b")
	due := func(queue string) float64 { return b.Queue(queue).Deserved.Get(gpu) }
	check := func(when string, wantA, wantB float64) {
		t.Helper()
		b.Update()
		if math.Abs(due("a")-wantA) > 1e-9 || math.Abs(due("b")-wantB) > 1e-9 {
			t.Errorf("%s a is due %g and b %g, want %g and %g", when, due("a"), due("b"), wantA, wantB)
		}
	}
	b.Pass(noon)
	b.SetJob(keyOf(1), holder(1, "a", 16, 0))
	check("at first", 16, 0)
	b.Pass(noon.Add(2 * time.Hour))
	b.SetJob(keyOf(2), holder(2, "b", 0, 16))
	check("after two hours", 0, 16)
	if got := average(b, "a"); math.Abs(got-12) > 1e-9 {
		t.Errorf("a has held %g on average, want 12", got)
	}

	b.SetJob(keyOf(1), holder(1, "a", 0, 16))
	b.SetJob(keyOf(2), holder(2, "b", 16, 0))
	b.Pass(noon.Add(2*time.Hour + 59*time.Second))
	check("within a minute", 0, 16)
	loosened := b.Loosened()
	b.Pass(noon.Add(2*time.Hour + time.Minute))
	b.Update()
	if b.Loosened() == loosened || due("a") <= 0 {
		t.Errorf("a minute later a is due %g, want more than nothing; its room has grown: %t", due("a"), b.Loosened() != loosened)
	}
	if want := noon.Add(2*time.Hour + 2*time.Minute); !b.Moves().Equal(want) {
		t.Errorf("dues move next at %s, want %s", b.Moves(), want)
	}
	b.Pass(noon.Add(4*time.Hour + 30*time.Minute))
	check("when b has held them for long", 16, 0)
	b.Pass(noon)
	check("when the clock is set back", 16, 0)
}

func TestWhoHeldLessOfItsDueGoesFirst(t *testing.T) {
	b := sixteen(account.Capacity, account.Recency{HalfLife: time.Hour}, "a", "b")
	b.Pass(noon)
	b.SetJob(keyOf(1), holder(1, "a", 8, 4))
	b.Update()
	b.Pass(noon.Add(time.Hour))
	b.SetJob(keyOf(2), holder(2, "b", 8, 4))
	b.SetJob(keyOf(3), holder(3, "nowhere", 8, 4))
	b.Update()
	for queue, want := range map[string]float64{"a": 0.5, "b": 0, "nowhere": 0} {
		if got := b.Queue(queue).LatelyShare; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s has lately held %g of its due, want %g", queue, got, want)
		}
	}
	b.Pass(noon.Add(2 * time.Hour))
	b.Update()
	// Nothing is due to a queue that does not exist: what it held counts as part of the cluster.
	for queue, want := range map[string]float64{"a": 0.75, "b": 0.5, "nowhere": 0.25} {
		if got := b.Queue(queue).LatelyShare; math.Abs(got-want) > 1e-9 {
			t.Errorf("an hour later %s has lately held %g of its due, want %g", queue, got, want)
		}
	}
}

func TestWhatWasHeldOutlivesTheScheduler(t *testing.T) {
	r := account.Recency{HalfLife: time.Hour, Pull: 1}
	before := sixteen(account.Proportion, r, "a", "b")
	before.Pass(noon)
	before.SetJob(keyOf(1), holder(1, "a", 16, 0))
	before.Update()
	before.Pass(noon.Add(time.Hour))
	told, forgotten := before.Recent(before.Queue("a"), model.Recent{})
	if !forgotten {
		t.Error("a queue tells nothing, and it would be known that it held 8")
	}
	text, err := told.Annotation()
	if err != nil {
		t.Fatal(err)
	}
	said, err := model.RecentOf(map[string]string{model.RecentUseAnnotation: text})
	if err != nil {
		t.Fatal(err)
	}

	after := sixteen(account.Proportion, r, "b")
	after.SetQueue("a", &model.Queue{Name: "a", Weight: 1, Recent: said})
	after.Pass(noon.Add(2 * time.Hour))
	after.SetJob(keyOf(1), holder(1, "a", 16, 0))
	after.Update()
	before.Pass(noon.Add(2 * time.Hour))
	kept, forgotten := before.Recent(before.Queue("a"), said)
	if got, want := average(after, "a"), kept.Average.Get(gpu); math.Abs(got-want) > 1e-3 || forgotten {
		t.Errorf("after a restart a has held %g on average, want %g; it was feared to be forgotten: %t", got, want, forgotten)
	}
	// What is held counts as held since what is told. That it ended a while ago, nobody would know.
	before.SetJob(keyOf(1), holder(1, "a", 0, 0))
	before.Pass(noon.Add(3 * time.Hour))
	before.Update()
	if _, forgotten = before.Recent(before.Queue("a"), kept); forgotten {
		t.Error("what a held when its job ended is told, and would be forgotten")
	}
	if _, forgotten = before.Recent(before.Queue("a"), said); !forgotten {
		t.Error("that a held 16 for an hour more is not told, and would be known")
	}
}

// A configuration is changed while the scheduler runs: what queues have held is known better than their objects tell.
func TestANewBookInheritsWhatWasHeld(t *testing.T) {
	r := account.Recency{HalfLife: time.Hour, Pull: 1}
	old := sixteen(account.Proportion, r, "a")
	old.Pass(noon)
	old.SetJob(keyOf(1), holder(1, "a", 16, 0))
	old.Update()

	b := sixteen(account.Capacity, account.Recency{HalfLife: 2 * time.Hour})
	b.Inherit(old)
	wrong := model.Recent{At: noon, Average: resource.Portion{{Name: gpu, Value: 4}}}
	b.SetQueue("a", &model.Queue{Name: "a", Weight: 1, Recent: wrong})
	b.SetQueue("b", &model.Queue{Name: "b", Weight: 1, Recent: wrong})
	b.SetJob(keyOf(1), holder(1, "a", 16, 0))
	b.Pass(noon.Add(2 * time.Hour))
	b.Update()
	for queue, want := range map[string]float64{"a": 8, "b": 2} {
		if got := average(b, queue); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s has held %g on average, want %g", queue, got, want)
		}
	}
}

func TestATimeThatIsYetToComeCountsAsNow(t *testing.T) {
	b := sixteen(account.Proportion, account.Recency{HalfLife: time.Hour})
	b.SetQueue("a", &model.Queue{Name: "a", Weight: 1, Recent: model.Recent{
		At: noon.AddDate(100, 0, 0), Average: resource.Portion{{Name: gpu, Value: 8}},
	}})
	b.Pass(noon)
	b.Update()
	b.Pass(noon.Add(time.Hour))
	if got := average(b, "a"); math.Abs(got-4) > 1e-9 {
		t.Errorf("a has held %g on average, want 4", got)
	}
}

// Who waits to lead may be asked for figures now and then. It does not count by those: the leader tells what queues have held.
func TestWhoIsNotToldTheTimeKeepsNoCount(t *testing.T) {
	b := sixteen(account.Proportion, account.Recency{HalfLife: time.Hour})
	b.SetQueue("a", &model.Queue{Name: "a", Weight: 1})
	b.SetJob(keyOf(1), holder(1, "a", 16, 0))
	b.Update()
	b.SetQueue("a", &model.Queue{Name: "a", Weight: 1, Recent: model.Recent{At: noon, Average: resource.Portion{{Name: gpu, Value: 8}}}})
	b.Pass(noon)
	b.Update()
	if got := average(b, "a"); got != 8 {
		t.Errorf("a has held %g on average, want 8", got)
	}
}

func TestNothingCountsWhereItIsOff(t *testing.T) {
	b := sixteen(account.Proportion, account.Recency{Pull: 2}, "a")
	b.Pass(noon)
	b.SetJob(keyOf(1), holder(1, "a", 16, 0))
	b.Update()
	b.Pass(noon.Add(time.Hour))
	b.Update()
	kept, forgotten := b.Recent(b.Queue("a"), model.Recent{At: noon})
	if !b.Moves().IsZero() || !kept.At.IsZero() || forgotten || b.Queue("a").LatelyShare != 0 {
		t.Errorf("dues move at %s, a held %v", b.Moves(), kept)
	}
}

// However often it is looked at, the average is the sum over all times of what was held, each counted half after a half-life; a queue has held what
// those below it have, also when they move in the tree.
func TestAveragesAreThoseOfTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		halfLife := time.Duration(rapid.Int64Range(1, 48).Draw(t, "half-life")) * time.Hour
		b := sixteen(account.Hierarchy, account.Recency{HalfLife: halfLife})
		parents := map[string]string{"a": "x", "b": "y"}
		move := func(leaf, parent string) {
			parents[leaf] = parent
			b.SetQueue(leaf, &model.Queue{Name: leaf, Parent: parent, Weight: 1})
		}
		for _, name := range []string{"x", "y"} {
			b.SetQueue(name, &model.Queue{Name: name, Weight: 1})
		}
		move("a", "x")
		move("b", "y")
		now, holds, want := noon, map[string]int64{}, map[string]float64{}
		b.Pass(now)
		b.Update()
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			passes := time.Duration(rapid.Int64Range(0, 7200).Draw(t, "seconds")) * time.Second
			stays := math.Pow(0.5, passes.Hours()/halfLife.Hours())
			held := map[string]int64{"a": holds["a"], "b": holds["b"], "root": holds["a"] + holds["b"]}
			for leaf, parent := range parents {
				held[parent] += holds[leaf]
			}
			for _, name := range []string{"a", "b", "x", "y", "root"} {
				want[name] = want[name]*stays + float64(held[name])*(1-stays)
			}
			now = now.Add(passes)
			b.Pass(now)
			i := rapid.IntRange(0, 1).Draw(t, "leaf")
			leaf := []string{"a", "b"}[i]
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				holds[leaf] = rapid.Int64Range(0, 16).Draw(t, "holds")
				b.SetJob(keyOf(i), holder(i, leaf, holds[leaf], 1))
			case 1:
				move(leaf, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "parent"))
			}
			b.Update()
		}
		for name, want := range want {
			if got := average(b, name); math.Abs(got-want) > 1e-6 {
				t.Fatalf("%s has held %g on average, want %g", name, got, want)
			}
		}
	})
}
