// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/pkg/plugins/gang"
)

// counted counts pods that wait for a slot. At most so many are to wait at a time, and none when the test ends.
func counted(t *testing.T, most int) (queued func(more int)) {
	var now, highest atomic.Int32
	t.Cleanup(func() {
		if int(highest.Load()) != most || now.Load() != 0 {
			t.Errorf("%d pods waited at a time, and %d wait in the end: want %d and none", highest.Load(), now.Load(), most)
		}
	})
	return func(more int) { highest.Store(max(highest.Load(), now.Add(int32(more)))) }
}

func TestNoMorePodsAreBoundAtATimeThanThereAreSlots(t *testing.T) {
	for name, tc := range map[string]struct {
		slots, pods int
		// want is how long it takes in all when binding a pod takes a second.
		want time.Duration
	}{
		"one slot":                {1, 4, 4 * time.Second},
		"three slots, three pods": {3, 3, time.Second},
		"three slots, ten pods":   {3, 10, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slots := gang.NewSlots(tc.slots, counted(t, tc.pods-tc.slots))
				begin := time.Now()
				var binding, most atomic.Int32
				done := make(chan error)
				for range tc.pods {
					go func() {
						err := slots.Acquire(t.Context(), 1)
						most.Store(max(most.Load(), binding.Add(1)))
						time.Sleep(time.Second)
						binding.Add(-1)
						slots.Release()
						done <- err
					}()
				}
				for range tc.pods {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
				if got := int(most.Load()); got > tc.slots {
					t.Errorf("%d pods were bound at a time with %d slots", got, tc.slots)
				}
				if got := time.Since(begin); got != tc.want {
					t.Errorf("it took %v, want %v", got, tc.want)
				}
			})
		})
	}
}

func TestASlotThatNobodyWaitsForIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := gang.NewSlots(2, counted(t, 0))
		bound := make(chan int)
		go func() {
			for i := range 5 {
				if err := slots.Acquire(t.Context(), 1); err == nil {
					slots.Release()
				}
				bound <- i
			}
		}()
		for i := range 5 {
			synctest.Wait()
			select {
			case <-bound:
			default:
				t.Fatalf("pod %d waits though no pod is being bound", i)
			}
		}
	})
}

// A gang is bound as a whole before the next one: who is first does not depend on who asked first, unless both are of
// one turn.
func TestOlderTurnsAreBoundFirst(t *testing.T) {
	// pod is named after the order in which it asks, from a.
	type pod struct {
		name string
		turn uint64
	}
	for name, tc := range map[string]struct {
		asking []pod
		want   []string
	}{
		"of one turn as they come":                {[]pod{{"a", 5}, {"b", 5}, {"c", 5}}, []string{"a", "b", "c"}},
		"older turns before":                      {[]pod{{"a", 3}, {"b", 1}, {"c", 2}}, []string{"b", "c", "a"}},
		"each turn as they come":                  {[]pod{{"a", 2}, {"b", 1}, {"c", 2}, {"d", 1}}, []string{"b", "d", "a", "c"}},
		"pods without a turn go before all gangs": {[]pod{{"a", 1}, {"b", 0}}, []string{"b", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slots := gang.NewSlots(1, counted(t, len(tc.asking)))
				if err := slots.Acquire(t.Context(), 9); err != nil {
					t.Fatal(err)
				}
				order := make(chan string, len(tc.asking))
				for _, p := range tc.asking {
					go func() {
						if err := slots.Acquire(t.Context(), p.turn); err == nil {
							order <- p.name
							slots.Release()
						}
					}()
					synctest.Wait()
				}
				slots.Release()
				synctest.Wait()
				close(order)
				var got []string
				for name := range order {
					got = append(got, name)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want,+got)\n%s", diff)
				}
			})
		})
	}
}

// Whoever gives up leaves no slot taken, also when the slot comes at the same moment: whether the pod notices is a matter
// of chance then, so that is tried often.
func TestWhoGivesUpPassesItsSlotOn(t *testing.T) {
	gone := errors.New("the pod was deleted")
	giveUp := func(_ gang.Slots, cancel context.CancelCauseFunc) { cancel(gone) }
	free := func(slots gang.Slots, _ context.CancelCauseFunc) { slots.Release() }
	type steps = []func(gang.Slots, context.CancelCauseFunc)
	for name, tc := range map[string]struct {
		steps steps
		// want is what the pod gets.
		want error
	}{
		"while all slots are taken":    {steps{giveUp, func(gang.Slots, context.CancelCauseFunc) { synctest.Wait() }, free}, gone},
		"at the moment the slot comes": {steps{giveUp, free}, gone},
		"after the slot came":          {steps{free, giveUp}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for range 200 {
				synctest.Test(t, func(t *testing.T) {
					slots := gang.NewSlots(1, counted(t, 2))
					if err := slots.Acquire(t.Context(), 1); err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					first, second := make(chan error, 1), make(chan error, 1)
					go func() { first <- slots.Acquire(ctx, 1) }()
					synctest.Wait()
					go func() { second <- slots.Acquire(t.Context(), 2) }()
					synctest.Wait()
					for _, step := range tc.steps {
						step(slots, cancel)
					}
					err := <-first
					if !errors.Is(err, tc.want) {
						t.Errorf("error is %v, want %v", err, tc.want)
					}
					if err == nil {
						slots.Release()
					}
					synctest.Wait()
					select {
					case err := <-second:
						if err != nil {
							t.Error(err)
						}
					default:
						t.Fatal("a slot is free and the next pod waits for it")
					}
				})
			}
		})
	}
}
