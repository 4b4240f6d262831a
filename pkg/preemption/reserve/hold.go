// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Holds are the jobs for which room is kept until pods have ended that nobody evicts.
type Holds struct{ k *Keeper }

// Terms are what the start of a job for which room is reserved depends on besides the pods in the way.
type Terms struct {
	// Within is how much later the room may be free than is expected, because short jobs use it until then.
	Within time.Duration
	// IfDue: the job's queue may hold less by then because others ask for more.
	IfDue bool
}

// Make keeps room for a job until pods have ended that nobody evicts. It takes the place of room that was kept for the job before. Nobody but
// the planner is told of it.
//
// Nobody of another profile is kept from the room: to be told of it would be a write to the API server for each pod.
func (s Holds) Make(ctx context.Context, job *model.Job, a gang.Ahead, terms Terms) {
	w := wait{pods: maps.Clone(a.Leavers), fillers: map[types.UID]string{}, until: a.Start, held: true, told: toldOf(a, terms)}
	placed := map[types.UID]bool{}
	nominations := make([]model.Nomination, len(a.Placements))
	for i, p := range a.Placements {
		nominations[i] = model.Nomination{UID: p.Task.UID, Node: p.Node}
		placed[p.Task.UID] = true
		w.members = append(w.members, p.Task.UID)
		w.nodes = append(w.nodes, p.Node)
	}
	var released []types.UID
	for _, t := range job.Tasks {
		if t.Nominated != "" {
			s.k.profile.DeleteNominatedPodIfExists(t.Pod)
			if !placed[t.UID] {
				released = append(released, t.UID)
			}
		}
	}
	s.k.waits.put(job.Key, w)
	s.k.state.Reserve(nominations, released)
	klog.FromContext(ctx).V(2).Info("Reserving room", "job", job.Key, "queue", job.Queue, "pods", len(nominations), "leavers", len(w.pods),
		"start", a.Start, "bound", a.Sure)
	// What happened to the job meanwhile is looked at in the end.
	s.k.follow(model.Change{Jobs: []model.JobKey{job.Key}})
}

// toldOf says for people what room is reserved, and when it will be free.
func toldOf(a gang.Ahead, terms Terms) string {
	nodes := map[string]bool{}
	for _, p := range a.Placements {
		nodes[p.Node] = true
	}
	when := "when pods that are there end, which nobody has said"
	switch at := a.Start.UTC().Format(time.RFC3339); {
	case a.Sure:
		when = "by " + at + ", when the last pod that is there is stopped"
	case !a.Guessed:
		if when = "about " + at + ", when the last pod that is there is expected to end"; terms.Within > 0 {
			when += fmt.Sprintf(", or up to %s later, as short jobs use the room until then", duration.HumanDuration(terms.Within))
		}
	}
	if terms.IfDue {
		when += ", if its queue is still due as much, which others may change by asking for more"
	}
	return fmt.Sprintf("room is reserved for %d pods on %d nodes: the job starts %s", len(a.Placements), len(nodes), when)
}

// Told says for people what room is reserved for a job.
func (s Holds) Told(key model.JobKey) string {
	w, _ := s.k.waits.get(key)
	return w.told
}

// releaseReserved gives up the room that is reserved for tasks of a job for which no other room is kept by now.
func (s Holds) releaseReserved(key model.JobKey) {
	job := s.k.state.Job(key)
	if job == nil {
		return
	}
	var uids []types.UID
	for _, t := range job.Tasks {
		if t.Reserved {
			uids = append(uids, t.UID)
		}
	}
	if len(uids) > 0 {
		s.k.state.ClearNominations(uids...)
	}
}

// releaseRest gives up the room that is reserved for tasks of a job that are not among those placed: the job starts with others.
func (s Holds) releaseRest(job *model.Job, placements []gang.Placement) {
	placed := map[types.UID]bool{}
	for _, p := range placements {
		placed[p.Task.UID] = true
	}
	var uids []types.UID
	for _, t := range job.Tasks {
		if t.Nominated != "" && !placed[t.UID] {
			uids = append(uids, t.UID)
		}
	}
	if len(uids) > 0 {
		s.k.state.ClearNominations(uids...)
	}
}

// Has reports whether the room that is kept for a job is reserved until pods have ended.
func (s Holds) Has(key model.JobKey) bool {
	w, ok := s.k.waits.get(key)
	return ok && w.held
}

// Fill notes that pods use reserved room on some nodes, which the holder waits for too. Those of them that come before the holder it is not to wait for: then
// the room is no longer what was reserved.
func (s Holds) Fill(holder model.JobKey, placements []gang.Placement, before bool) {
	job := s.k.state.Job(holder)
	if job == nil {
		return
	}
	kept := map[string]bool{}
	for _, t := range job.Tasks {
		if t.Reserved {
			kept[t.Nominated] = true
		}
	}
	for _, p := range placements {
		if kept[p.Node] {
			s.k.waits.fill(holder, p.Task.UID, p.Node, before)
		}
	}
}

// Departures are what holders wait for.
func (s Holds) Departures() map[model.JobKey]gang.Departure { return s.k.waits.departures() }

// KeptFrom are the tasks for which room is kept from a job: all but those for which it is reserved and that are the job's own.
func (s Holds) KeptFrom(key model.JobKey) []*model.Task {
	return slices.DeleteFunc(s.k.Kept(), func(t *model.Task) bool { return t.Reserved && t.Job == key })
}

// Outlook tells when pods are expected to end. A job does not wait for its own.
func (s Holds) Outlook(except model.JobKey, declared bool) gang.Outlook {
	now, snapshot := s.k.clock.Now(), s.k.state.Snapshot()
	return func(pod *corev1.Pod) gang.Leaver {
		t := s.k.state.Task(pod.UID)
		if t == nil {
			return gang.Leaver{Ending: model.EndingOf(pod, nil, declared, now), Request: resource.OfPod(pod)}
		}
		if t.Job == except {
			return gang.Leaver{}
		}
		job := snapshot.Job(t.Job)
		l := gang.Leaver{Ending: model.EndingOf(t.Pod, job, declared, now), Request: t.Request}
		if job != nil && t.Status != model.Releasing {
			// What terminates does not count for its queue any more.
			l.Queue, l.Charge = job.Queue, t.Charge
		}
		return l
	}
}

// there reports whether a pod is on a node of the snapshot.
func (s Holds) there(uid types.UID, node string) bool {
	info, err := s.k.profile.SnapshotSharedLister().NodeInfos().Get(node)
	return err == nil && onNode(info, uid)
}

// inTheWay counts the pods that a holder waits for. Once a node is gone or shut, or a task has been replaced by another one, it waits for none.
func (s Holds) inTheWay(w wait) (left int, until time.Time) {
	for _, uid := range w.members {
		if t := s.k.state.Task(uid); t == nil || !t.Reserved {
			return 0, w.until
		}
	}
	for _, name := range w.nodes {
		if info, err := s.k.profile.SnapshotSharedLister().NodeInfos().Get(name); err != nil || info.Node().Spec.Unschedulable {
			return 0, w.until
		}
	}
	for _, pods := range []map[types.UID]string{w.pods, w.fillers} {
		for uid, node := range pods {
			if s.there(uid, node) {
				left++
			}
		}
	}
	return left, w.until
}

// departures are what holders wait for.
func (w *waits) departures() map[model.JobKey]gang.Departure {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all map[model.JobKey]gang.Departure
	for key, found := range w.of {
		if !found.held {
			continue
		}
		if all == nil {
			all = map[model.JobKey]gang.Departure{}
		}
		all[key] = gang.Departure{Pods: found.pods, Fillers: found.fillers, Until: found.until}
	}
	return all
}

// put replaces what a job waits for.
func (w *waits) put(key model.JobKey, now wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[key] = now
}

// fill adds a pod to those that a holder waits for; before: it waits for none any more.
func (w *waits) fill(key model.JobKey, uid types.UID, node string, before bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, ok := w.of[key]
	if !ok || !found.held {
		return
	}
	if before {
		found.pods, found.fillers = map[types.UID]string{}, map[types.UID]string{}
	} else {
		found.fillers = maps.Clone(found.fillers)
		found.fillers[uid] = node
	}
	w.of[key] = found
}
