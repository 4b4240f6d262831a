// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// EvictionWorld is what a trial looks at besides jobs and queues. A function that is nil knows of nothing.
type EvictionWorld struct {
	Now time.Time
	// Budgets returns the disruption budgets of a namespace.
	Budgets func(namespace string) []*model.DisruptionBudget
	// BarredQueues returns until when the beneficiary's queue may take nothing from a queue; zero when it may.
	BarredQueues func(victimQueue string) (until time.Time)
	// Refused returns until when a pod is left alone because the API server refused its eviction; zero when it is not.
	Refused func(uid types.UID) time.Time
}

// Trial answers who may be evicted for one job, as of when it was made and with what was taken and gained since. It is
// not safe for concurrent use, but does not look at the Set any more.
type Trial struct{}

// Trial begins a trial of an action for a job.
func (s *Set) Trial(action config.Action, job *model.Job, w EvictionWorld) *Trial { return &Trial{} }

// Starving reports whether the job may have others evicted as far as its own state goes.
func (s *Set) Starving(job *model.Job) bool { return false }

// MayEvict returns the configured actions, in order, by which a starving job might find a victim.
func (s *Set) MayEvict(job *model.Job) []config.Action { return nil }

// Entitled says why the queue may not take so much on top of what it holds; the zero Reason when it may.
func (t *Trial) Entitled(need resource.Vector) model.Reason { return model.Reason{} }

// Candidate says why a task can never be a victim in this trial; empty when it may be.
func (t *Trial) Candidate(v model.Victim) string { return "" }

// Judge says why these may not go together, on top of all taken so far; empty when they may.
func (t *Trial) Judge(vs ...model.Victim) (why string) { return "" }

// Take counts a victim as gone.
func (t *Trial) Take(v model.Victim) {}

// Return undoes Take.
func (t *Trial) Return(v model.Victim) {}

// Gain counts a task of the beneficiary as placed.
func (t *Trial) Gain(task *model.Task) {}

// Lose undoes Gain.
func (t *Trial) Lose(task *model.Task) {}

// Compare is the order in which victims are tried, negative when a goes first.
func (t *Trial) Compare(a, b model.Victim) int { return 0 }

// Distance is how far the victim's queue is from the beneficiary's in the tree of queues.
func (t *Trial) Distance(v model.Victim) int { return 0 }

// WholeJobs reports whether a job at its minimum may be evicted as a whole.
func (t *Trial) WholeJobs() bool { return false }

// Reversible says how a victim's job could take the room back once all is done; empty when it could not.
func (t *Trial) Reversible(taken []model.Victim, gained []*model.Task) (why string) { return "" }

// Again is the earliest time at which somebody who was refused for a time might not be; zero for never.
func (t *Trial) Again() time.Time { return time.Time{} }

// Release counts as given back what a victim of a queue holds.
func (b *Budget) Release(queue string, v resource.Vector) {}
