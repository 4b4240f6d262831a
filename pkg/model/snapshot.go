// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"hash/maphash"
	"maps"
	"runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The jobs of a snapshot are kept in a tree of two levels, by a hash of their keys. A snapshot copies the branches and the leaves in which a job
// changed: with 150,000 jobs a leaf has two or three, and a branch is some kilobytes.
const (
	branches = 512
	leaves   = 128
)

// tree is all jobs; a branch without jobs is nil.
type tree [branches]*branch

type branch [leaves][]*Job

// find returns a job, or nil.
func (t *tree) find(key JobKey) *Job {
	i, k := leafOf(key)
	if t[i] == nil {
		return nil
	}
	for _, j := range t[i][k] {
		if j.Key == key {
			return j
		}
	}
	return nil
}

// put puts a job in, or takes it out if it is nil. The branch is its own already; the leaf is copied.
func (t *tree) put(key JobKey, j *Job) {
	i, k := leafOf(key)
	before := t[i][k]
	leaf := make([]*Job, 0, len(before)+1)
	for _, other := range before {
		if other.Key != key {
			leaf = append(leaf, other)
		}
	}
	if j != nil {
		leaf = append(leaf, j)
	}
	t[i][k] = leaf
}

// Snapshot is the model at one moment. It never changes, and shares with other snapshots whatever did not change
// between them.
type Snapshot struct {
	jobs   *tree
	queues map[string]*Queue
	Totals Totals
}

// Job returns a job, or nil.
func (s *Snapshot) Job(key JobKey) *Job { return s.jobs.find(key) }

// JobOf returns the job that a pod belongs to, or nil.
func (s *Snapshot) JobOf(pod *corev1.Pod) *Job {
	return s.Job(jobAmong(func(key JobKey) bool { return s.Job(key) != nil }, pod))
}

// Queue returns a queue, or nil.
func (s *Snapshot) Queue(name string) *Queue { return s.queues[name] }

// Queues calls yield for each queue until it returns false, in no particular order.
func (s *Snapshot) Queues(yield func(*Queue) bool) {
	for _, q := range s.queues {
		if !yield(q) {
			return
		}
	}
}

// Jobs calls yield for each job until it returns false, in no particular order.
func (s *Snapshot) Jobs(yield func(*Job) bool) {
	for _, b := range s.jobs {
		if b == nil {
			continue
		}
		for _, leaf := range b {
			for _, j := range leaf {
				if !yield(j) {
					return
				}
			}
		}
	}
}

var seed = maphash.MakeSeed()

// leafOf is the branch and the leaf of a key.
func leafOf(key JobKey) (branch, leaf int) {
	h := maphash.Comparable(seed, key)
	return int(h % branches), int(h / branches % leaves)
}

// snapshotter remembers what the last snapshot held and which jobs changed since.
type snapshotter struct {
	jobs   tree
	queues map[string]*Queue
	dirty  map[JobKey]bool
	// all: so many jobs changed that they are no longer told apart. So it is before the first snapshot, which a standby may
	// not take for weeks.
	all           bool
	queuesChanged bool
}

// fewChanges is how many changed jobs are told apart however few there are.
const fewChanges = 1024

func newSnapshotter() snapshotter {
	return snapshotter{dirty: map[JobKey]bool{}, queues: map[string]*Queue{}, all: true}
}

// changed takes note of a job, of so many that exist.
func (sn *snapshotter) changed(key JobKey, of int) {
	switch {
	case sn.all:
	case len(sn.dirty) >= max(of, fewChanges):
		sn.dirty, sn.all = map[JobKey]bool{}, true
	default:
		sn.dirty[key] = true
	}
}

// Snapshot returns the model as it is now. The cost is proportional to what changed since the last call.
func (s *State) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	sn := &s.snapshots
	if sn.all {
		s.copyAll()
	} else {
		s.copyChanged()
	}
	if sn.queuesChanged {
		sn.queues, sn.queuesChanged = maps.Clone(s.queues), false
	}
	jobs := sn.jobs
	return &Snapshot{jobs: &jobs, queues: sn.queues, Totals: s.ledger.totals()}
}

// copyAll brings all jobs of the next snapshot up to date.
func (s *State) copyAll() {
	sn := &s.snapshots
	sn.all, sn.jobs = false, tree{}
	for key, e := range s.jobs {
		i, k := leafOf(key)
		if sn.jobs[i] == nil {
			sn.jobs[i] = &branch{}
		}
		sn.jobs[i][k] = append(sn.jobs[i][k], s.freeze(e))
	}
}

// copyChanged brings those up to date that changed since the last one.
func (s *State) copyChanged() {
	sn := &s.snapshots
	var copied [branches]bool
	for key := range sn.dirty {
		i, _ := leafOf(key)
		if !copied[i] {
			copied[i] = true
			own := branch{}
			if sn.jobs[i] != nil {
				own = *sn.jobs[i]
			}
			sn.jobs[i] = &own
		}
		var job *Job
		if e := s.jobs[key]; e != nil {
			job = s.freeze(e)
		}
		sn.jobs.put(key, job)
	}
	clear(sn.dirty)
}

// few is how many jobs are copied, or nodes looked at, while the model is locked for who reads them all.
const few = 256

// Jobs calls yield for each job until it returns false, in no particular order. Each is as it is when its turn comes, and one that comes meanwhile may be
// left out. Others have the model in between, which they do not while a snapshot copies all that changed since the last one.
func (s *State) Jobs(yield func(*Job) bool) {
	s.mu.RLock()
	entries := slices.AppendSeq(make([]*entry, 0, len(s.jobs)), maps.Values(s.jobs))
	s.mu.RUnlock()
	for some := range slices.Chunk(entries, few) {
		jobs := s.freezeAll(some)
		// Who waited for the model has been woken, and gets the processor, too.
		runtime.Gosched()
		for _, j := range jobs {
			if !yield(j) {
				return
			}
		}
	}
}

// freezeAll returns those of some jobs that are there.
func (s *State) freezeAll(entries []*entry) []*Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	jobs := make([]*Job, 0, len(entries))
	for _, e := range entries {
		if s.jobs[e.job.Key] == e {
			jobs = append(jobs, s.freeze(e))
		}
	}
	return jobs
}

// Job returns one job as it is now, or nil.
func (s *State) Job(key JobKey) *Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.jobs[key]; e != nil {
		return s.freeze(e)
	}
	return nil
}

// Summary returns one job as it is now but without its tasks, which makes the call cheap for large jobs, or nil.
func (s *State) Summary(key JobKey) *Job {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.jobs[key]
	if e == nil {
		return nil
	}
	if e.frozen != nil {
		return e.frozen
	}
	j := s.head(e)
	return &j
}

// Task returns one task as it is now, or nil.
func (s *State) Task(uid types.UID) *Task {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.task(uid)
}

// Queue returns one queue as it is now, or nil.
func (s *State) Queue(name string) *Queue {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.queues[name]
}

// Totals returns the node totals as they are now.
func (s *State) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.totals()
}

// Quotas returns the resource quotas of a namespace by name.
func (s *State) Quotas(namespace string) []*Quota {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []*Quota
	for key, q := range s.quotas {
		if key.namespace == namespace {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, func(a, b *Quota) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
