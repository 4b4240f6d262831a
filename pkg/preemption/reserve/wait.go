// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"maps"
	"slices"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// wait is what a job for which room is kept waits for.
type wait struct {
	members []types.UID
	// pods are those that have to leave, by UID, with the nodes they are on.
	pods map[types.UID]string
	// devices are those of the victims' claims, which the job is to have.
	devices []*resourcev1.AllocationResult
	// until is when they should all be gone.
	until time.Time
	// lapsed: the room is not kept any more; whether it was in vain shows when the job starts, or does not wait any more.
	lapsed bool
	// held: the pods end by themselves, by until if what is known of them holds. Fillers are pods that use the room until it is needed.
	held    bool
	fillers map[types.UID]string
	// nodes are those on which room is reserved.
	nodes []string
	// told says for people when that is.
	told string
}

// waits are the jobs for which room is kept. No method calls out with the lock held.
type waits struct {
	mu sync.Mutex
	of map[model.JobKey]wait
}

func (w *waits) get(key model.JobKey) (wait, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, ok := w.of[key]
	return found, ok
}

// join has a job wait for more than it does already.
func (w *waits) join(key model.JobKey, more wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.of[key]; ok && !before.held {
		more.members = append(more.members, before.members...)
		maps.Copy(more.pods, before.pods)
		more.devices = append(more.devices, before.devices...)
		more.until = model.Later(more.until, before.until)
	}
	w.of[key] = more
}

// transfer counts tasks among those that a job was to start by a decision.
func (w *waits) transfer(key model.JobKey, given []model.Nomination) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, ok := w.of[key]
	if !ok {
		return
	}
	found.members = slices.Clone(found.members)
	for _, h := range given {
		found.members = append(found.members, h.UID)
	}
	w.of[key] = found
}

func (w *waits) devices(except model.JobKey) (devices []*resourcev1.AllocationResult) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, found := range w.of {
		if key != except {
			devices = append(devices, found.devices...)
		}
	}
	return devices
}

func (w *waits) lapse(key model.JobKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found, ok := w.of[key]; ok {
		found.pods, found.devices, found.until, found.held, found.lapsed = nil, nil, time.Time{}, false, true
		w.of[key] = found
	}
}

func (w *waits) end(key model.JobKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, key)
}

// overdue returns the jobs whose victims should have been gone by a time. A job that gets turns has found out by then.
func (w *waits) overdue(by time.Time) []model.JobKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []model.JobKey
	for key, found := range w.of {
		if !found.held && !found.until.After(by) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, model.JobKey.Compare)
	return keys
}

// wait has a job wait for the victims of a statement, and for what leaves its nodes anyway.
func (k *Keeper) wait(key model.JobKey, st gang.Statement, now time.Time) {
	w := wait{pods: map[types.UID]string{}, until: now}
	nodes := map[string]bool{}
	for _, p := range st.Placements {
		w.members = append(w.members, p.Task.UID)
		nodes[p.Node] = true
	}
	for _, v := range st.Victims {
		w.pods[v.Task.UID] = v.Task.Node
		w.until = model.Later(w.until, now.Add(model.GracePeriod(v.Task.Pod)))
	}
	for _, l := range k.state.Leaving() {
		if nodes[l.Node] {
			w.pods[l.UID] = l.Node
			w.until = model.Later(w.until, l.Until)
		}
	}
	w.until = w.until.Add(k.timeout)
	w.devices = k.devicesOf(st.Victims)
	k.waits.join(key, w)
}

// devicesOf are the devices that nobody has any more once all victims are gone.
func (k *Keeper) devicesOf(victims []model.Victim) (devices []*resourcev1.AllocationResult) {
	gone, seen := map[types.UID]bool{}, map[types.UID]bool{}
	for _, v := range victims {
		gone[v.Task.UID] = true
	}
	for _, v := range victims {
		for _, name := range model.ClaimsOf(v.Task.Pod) {
			c, err := k.profile.SharedDRAManager().ResourceClaims().Get(v.Task.Pod.Namespace, name)
			if err != nil || seen[c.UID] || c.Status.Allocation == nil {
				continue
			}
			stays := func(by resourcev1.ResourceClaimConsumerReference) bool { return !gone[by.UID] }
			if seen[c.UID] = true; !slices.ContainsFunc(c.Status.ReservedFor, stays) {
				devices = append(devices, c.Status.Allocation)
			}
		}
	}
	return devices
}

// KeptDevices are those that others than a job are to have, for which pods are evicted.
func (k *Keeper) KeptDevices(from model.JobKey) []*resourcev1.AllocationResult {
	return k.waits.devices(from)
}

// Awaited says how many pods have yet to leave for a job for which room is kept, or to give back their devices, and until when that is
// believed. When none is left, or the time is over, and the job still does not fit, the room does not help.
func (k *Keeper) Awaited(job *model.Job) (left int, until time.Time) {
	now := k.clock.Now()
	w, ok := k.waits.get(job.Key)
	switch {
	case !ok:
		k.adopt(job, now)
		w, _ = k.waits.get(job.Key)
	case w.held:
		return k.Holds.inTheWay(w)
	}
	if now.Before(w.until) {
		nodes := k.profile.SnapshotSharedLister().NodeInfos()
		pods := w.toLeave(job, k.state.Leaving(), k.state.Task)
		devices := k.withDevices(job, pods)
		for uid, node := range pods {
			if info, err := nodes.Get(node); err == nil && onNode(info, uid) || devices[uid] {
				left++
			}
		}
	}
	return left, w.until
}

// withDevices returns those of some pods that have devices by claims, which are given back after their pods are gone. Only jobs with claims
// of their own wait for them.
func (k *Keeper) withDevices(job *model.Job, pods map[types.UID]string) map[types.UID]bool {
	if job.Traits&model.HasClaims == 0 || len(pods) == 0 {
		return nil
	}
	claims, err := k.profile.SharedDRAManager().ResourceClaims().List()
	if err != nil {
		return nil
	}
	with := map[types.UID]bool{}
	for _, c := range claims {
		for _, by := range c.Status.ReservedFor {
			if _, leaves := pods[by.UID]; leaves && c.Status.Allocation != nil {
				with[by.UID] = true
			}
		}
	}
	return with
}

// adopt has a job for which a process before this kept room wait for what leaves that room. Whom that process evicted would have gone for
// nothing otherwise.
func (k *Keeper) adopt(job *model.Job, now time.Time) {
	var st gang.Statement
	for _, t := range job.Tasks {
		if t.Nominated != "" {
			st.Placements = append(st.Placements, gang.Placement{Task: t, Node: t.Nominated})
		}
	}
	k.wait(job.Key, st, now)
}

// toLeave are the pods that have to leave for a job, by UID, with their nodes, unless they have left since. Besides those
// that it waited for from the beginning these are all that leave the nodes where room is kept for it: room on the same
// nodes may have been made for others since, and until their victims have left both those and the others count there.
// Who was spared stays, and is not waited for.
func (w wait) toLeave(job *model.Job, leaving []model.Leaving, task func(types.UID) *model.Task) map[types.UID]string {
	kept := map[string]bool{}
	for _, t := range job.Tasks {
		if t.Nominated != "" {
			kept[t.Nominated] = true
		}
	}
	pods := map[types.UID]string{}
	for uid, node := range w.pods {
		if t := task(uid); t == nil || t.Completed() || t.Status == model.Releasing {
			pods[uid] = node
		}
	}
	for _, l := range leaving {
		if kept[l.Node] {
			pods[l.UID] = l.Node
		}
	}
	return pods
}

func onNode(info fwk.NodeInfo, uid types.UID) bool {
	return slices.ContainsFunc(info.GetPods(), func(p fwk.PodInfo) bool { return p.GetPod().UID == uid })
}
