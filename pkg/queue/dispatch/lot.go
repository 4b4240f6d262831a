// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// waiting is a job that has tasks to place.
type waiting struct {
	// job is the job as it was when it was last taken in.
	job *policy.Ranked
	// partial: some, but too few, members of the job hold nodes.
	partial bool
	// lot is set while the job may have turns, applied while it asks to be let into its queue.
	lot     *lot
	applied *applicants
	at      int
	// podless is since when the job is admitted without pods; zero when it is not.
	podless time.Time
	// reported is the last reason the outside was told.
	reported model.Reason
	// failures counts attempts in a row that ended in an error; notBefore is when the next may begin.
	failures int
	// refused counts turns for which there was no room, repeats those in a row that were planned without room that there is.
	refused, repeats int
	notBefore        time.Time
}

// Position implements heap.Element.
func (w *waiting) Position() *int { return &w.at }

// lot is the jobs of one queue that ask for the same thing. When one of them does not fit, neither do the others: one
// failed plan parks the whole lot, and one success brings the next job of it forward.
type lot struct {
	key    lotKey
	jobs   *heap.Heap[*waiting]
	at     int
	parked bool
	// outgrows: the jobs need more than their queue is due, as of when the lot was last held.
	outgrows bool
	// helps are the events that may end the parking.
	helps model.Event
	// reason is why the last plan for the lot did not hold; zero when there was none.
	reason model.Reason
	// checks is how often the lot is still to be tried again after an event, see settle.
	checks int
	// notBefore is when a lot that is parked or held is tried again though nothing happened; zero: never.
	notBefore time.Time
	// starving: evictions might help the lot's jobs, once somebody can be evicted.
	starving bool
	// appealed is when it was last looked for victims within what the queue is due, appealedBeyond when beyond it.
	appealed, appealedBeyond time.Time
}

// Position implements heap.Element.
func (l *lot) Position() *int { return &l.at }

func (l *lot) best() *waiting { return l.jobs.Top() }

// lastAppeal is when it was last looked for victims for a turn that borrows, or for one that does not: who may be evicted
// for the one and for the other are two questions.
func (l *lot) lastAppeal(borrowing bool) *time.Time {
	if borrowing {
		return &l.appealedBeyond
	}
	return &l.appealed
}

// lotKey says what a lot's jobs have in common.
type lotKey struct {
	queue string
	shape [sha256.Size]byte
}

// keyOf digests what a plan for the job depends on besides the nodes: what it must place and what it may choose from.
// A job that has members on nodes may be bound to them by affinity, and one for which room is kept has nodes of its own:
// each is a lot of its own. Alone: all jobs are.
func keyOf(j *model.Job, alone bool) lotKey {
	h := sha256.New()
	number := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
	r := j.Requirement()
	number(r.Tasks)
	for _, role := range slices.Sorted(maps.Keys(r.Roles)) {
		h.Write([]byte(role))
		number(r.Roles[role])
	}
	// Of one class or many, a job that needs a single task is like any other as long as the classes are the same.
	for _, demand := range j.Pending {
		h.Write(demand.Class[:])
		number(min(demand.Count, max(1, r.Tasks)))
	}
	if alone || j.Traits&model.HasPodTerms != 0 && j.Counts.Ready() > 0 || j.Counts.Nominated > 0 {
		h.Write([]byte(j.Key.String()))
	}
	key := lotKey{queue: j.Queue}
	h.Sum(key.shape[:0])
	return key
}

// helpedBy are the events after which a plan for the job may come out differently.
func helpedBy(traits model.Traits) model.Event {
	events := model.RoomMade | model.NodeChanged | model.QueueChanged | model.JudgedAnew
	if traits&model.HasPodTerms != 0 {
		events |= model.PodPlaced | model.NodeLost
	}
	if traits&model.HasVolumes != 0 {
		events |= model.StorageChanged
	}
	if traits&model.HasClaims != 0 {
		events |= model.DevicesChanged
	}
	return events
}
