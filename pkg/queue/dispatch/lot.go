// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// inLine is a job, and what its place among the jobs of its queue depends on.
type inLine struct {
	// job is the job as it was when it was last taken in.
	job *policy.Ranked
	// partial: some, but too few, members of the job hold nodes, and it goes before others for that.
	partial bool
}

// waiting is a job that has tasks to place.
type waiting struct {
	inLine
	// lot is set while the job may have turns, applied while it asks to be let into its queue. Both are while it is a guest.
	lot     *lot
	applied *application
	at      int
	promise
	patience
	// reported is the last reason the outside was told.
	reported model.Reason
	// exact: somebody goes by the labels of the job's pods, so that only jobs with equal ones are its like.
	exact bool
	setback
	// refused counts turns for which there was no room, repeats those in a row that were planned without room that there is.
	refused, repeats int
}

// Position implements heap.Element.
func (w *waiting) Position() *int { return &w.at }

// reason is why the job waits. Only other kinds of reasons are reported of each job: other numbers stand where its like have them together.
func (w *waiting) reason() model.Reason {
	switch {
	case w.lot != nil && w.applied == nil && w.lot.reason.Same(w.reported):
		return w.lot.reason
	case w.applied != nil && w.applied.to.reason.Same(w.reported):
		return w.applied.to.reason
	}
	return w.reported
}

// lot is the jobs of one queue that ask for the same thing. When one of them does not fit, neither do the others: one
// failed plan parks the whole lot, and one success brings the next job of it forward.
type lot struct {
	key  lotKey
	jobs *heap.Heap[*waiting]
	at   int
	stage
	// retry: the lot was refused though there seemed to be room, or may be again; its turns are paid from the allowance.
	retry bool
	// pass is the pass in which the lot was last set aside, and explainedAt when it was last found out why; doubts counts refusals in a row
	// though the counted room sufficed.
	pass        uint64
	explainedAt time.Time
	doubts      int
	// refusedSince is since when nodes have refused all plans for the lot; zero when they have not. Stalled: that is long ago.
	refusedSince time.Time
	stalled      bool
	// asks are the shapes that the lot waits for, while their places are counted; lack is how many places were missing when it was
	// last looked. Uncounted: some filter of the lot's does not go by what is counted.
	asks      []ask
	lack      int
	uncounted bool
	// placesThen is how many places there were when the lot was last refused.
	placesThen int
	// behind: the lot waits for another job of its queue to start first.
	behind bool
	// missed: something happened while its last plan was made.
	missed bool
	// swept: the lot had its last turn because no plan had been made for it for long.
	swept bool
	// outgrows: the jobs need more than their queue is due, as of when the lot was last held.
	outgrows bool
	// helps are the events that may end the parking.
	helps model.Event
	// reason is why the last plan for the lot did not hold; zero when there was none.
	reason model.Reason
	// checks is how often the lot is still to be tried again after an event, see retryDelays.
	checks int
	// notBefore is when a lot that is parked or held is tried again though nothing happened; zero: never.
	notBefore time.Time
	// starving: evictions might help the lot's jobs, once somebody can be evicted. patientUntil is from when on they may, if the jobs are to wait
	// for that; zero if not.
	starving     bool
	patientUntil time.Time
	// judged is the job for which the lot was last set aside.
	judged standing
	// searched is when it was last looked for victims within what the queue is due, searchedBeyond when beyond it.
	searched, searchedBeyond time.Time
}

// standing is what decides whom a job may have evicted, besides what is in the key of its lot.
type standing struct {
	job     model.JobKey
	starves bool
}

func (l *lot) standing(policies *policy.Set) standing {
	first := l.best().job.Job
	return standing{first.Key, policies.Starving(first)}
}

// stage is what a lot waits for.
type stage uint8

// The stages of a lot.
const (
	// ready: a turn, in the order of the policies.
	ready stage = iota
	// postponed: something may have helped it, and it waits for the next pass.
	postponed
	// parked: something that can help it.
	parked
	// held: its queue to have room.
	held
)

// Position implements heap.Element.
func (l *lot) Position() *int { return &l.at }

func (l *lot) best() *waiting { return l.jobs.Top() }

// resting reports whether nothing but the time helps the lot.
func (l *lot) resting() bool { return l.stage == parked && l.helps == 0 && !l.behind }

// lastSearch is when it was last looked for victims for a turn that borrows, or for one that does not: who may be evicted
// for the one and for the other are two questions.
func (l *lot) lastSearch(borrowing bool) *time.Time {
	if borrowing {
		return &l.searchedBeyond
	}
	return &l.searched
}

// lotKey says what a lot's jobs have in common.
type lotKey struct {
	lineKey
	shape [sha256.Size]byte
	// runs is the class of how long the jobs run, where that matters.
	runs uint8
}

// keyOf digests what a plan for the job depends on besides the nodes: what it must place and what it may choose from.
// A job that has members on nodes may be bound to them by affinity or topology, and one for which room is kept has nodes of its own:
// each is a lot of its own. So is one with subgroups whose tasks differ. Labels and namespaces tell jobs apart as far as their pods' own terms, volumes and claims go by them; exact:
// in all that pods differ in. Alone: all jobs are lots of their own.
func keyOf(j *model.Job, exact, alone bool) lotKey {
	h := sha256.New()
	number := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
	r := j.Requirement()
	number(r.Tasks)
	// Whom it may have evicted goes by it, whoever comes first of its like.
	number(int(j.Priority))
	for _, role := range slices.Sorted(maps.Keys(r.Roles)) {
		h.Write([]byte(role))
		number(r.Roles[role])
	}
	// Of one class or many, a job that needs a single task is like any other as long as the classes are the same.
	for _, a := range askedBy(j, exact, len(r.Roles) > 0) {
		h.Write([]byte(a.role))
		h.Write(a.key[:])
		number(min(a.count, max(1, r.Tasks)))
	}
	if j.Group != nil && j.Group.Topology != nil {
		fmt.Fprintf(h, "%+v", *j.Group.Topology)
	}
	if j.Group != nil && j.Group.TopologyKey != "" {
		fmt.Fprintf(h, "by label %s", j.Group.TopologyKey)
	}
	if delay := j.PreemptionDelay(); delay > 0 {
		// Whose like may have others evicted already does not wait behind it.
		fmt.Fprintf(h, "\npatient for %s", delay)
	}
	writeSubGroups(h, j)
	writeOwn(h, j)
	if alone || j.Counts.Nominated > 0 || j.Counts.Ready() > 0 && (j.Traits&model.HasPodTerms != 0 || j.Together()) || len(j.SubGroups) > 0 && len(j.Pending) > 1 {
		h.Write([]byte(j.Key.String()))
	}
	key := lotKey{lineKey: lineKey{queue: j.Queue}}
	h.Sum(key.shape[:0])
	return key
}

// writeSubGroups writes what the subgroups of a job need, whose tasks are all alike.
func writeSubGroups(h io.Writer, j *model.Job) {
	for i := range j.SubGroups {
		c := &j.SubGroups[i]
		p := &j.Group.SubGroups[c.ID.Policy]
		fmt.Fprintf(h, "\nsubgroup %d %d %d %d %d", c.ID.Policy, p.Size, p.Min, j.Lacks(c), c.Placeable())
		if p.Topology != nil {
			fmt.Fprintf(h, " %+v", *p.Topology)
		}
	}
}

// writeOwn writes why its queue may have room for a job and not for others like it: room is kept for it, or what it holds already does not
// count.
func writeOwn(h io.Writer, j *model.Job) {
	if claimed := j.Usage.Claimed; !claimed.IsZero() {
		fmt.Fprintf(h, "\nclaims %s", claimed)
	}
	if own := j.OwnHalf(); !own.IsZero() {
		fmt.Fprintf(h, "\nhalf %s", own)
	}
}

// asked is a number of tasks that ask for the same.
type asked struct {
	role  string
	key   model.Class
	count int
}

func (a asked) same(o asked) bool { return a.role == o.role && a.key == o.key }

// askedBy sums up what the waiting tasks of a job ask for, in the order of the keys: byRole, for each role of its own.
func askedBy(j *model.Job, exact, byRole bool) []asked {
	list := make([]asked, 0, len(j.Pending))
	for i := range j.Pending {
		a := asked{key: j.Pending[i].Ask, count: j.Pending[i].Count}
		if exact {
			a.key = j.Pending[i].Class
		}
		if byRole {
			a.role = j.Pending[i].Role
		}
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b asked) int {
		return cmp.Or(strings.Compare(a.role, b.role), bytes.Compare(a.key[:], b.key[:]))
	})
	n := 0
	for _, a := range list {
		if n > 0 && list[n-1].same(a) {
			list[n-1].count += a.count
			continue
		}
		list[n] = a
		n++
	}
	return list[:n]
}

// helpedBy are the events after which a plan for the job may come out differently.
func helpedBy(w *waiting) model.Event {
	traits := w.job.Traits
	events := model.RoomMade | model.NodeChanged | model.QueueChanged | model.JudgedAnew | model.KeptRoomFreed
	if traits&model.HasPodTerms != 0 || w.exact {
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
