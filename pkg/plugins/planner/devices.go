// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/utils/ptr"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// DynamicResources notes in PreFilter which devices are allocated. It is not told when a trial takes a pod off its node. So nobody could be
// evicted for devices. Here its PreFilter runs once more after pods with claims were moved. It is shown claims as they would be then.

// Devices shows plans the devices that there would be: with pods moved, and without those that are kept for others. A scheduler has one for
// all of its profiles, also for those that a new configuration makes anew.
type Devices struct {
	kept func(model.JobKey) []*resourcev1.AllocationResult
	mu   sync.Mutex
	// prefilter is there once somebody has needed it.
	prefilter *devicePreFilter
}

// NewDevices returns the devices of a scheduler. Kept are those that others than a job are to have; nil: there are none.
func NewDevices(kept func(model.JobKey) []*resourcev1.AllocationResult) *Devices {
	return &Devices{kept: kept}
}

// preFilter returns what runs PreFilter on claims that are not as the API server has them.
func (d *Devices) preFilter(f framework.Framework) (*devicePreFilter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.prefilter != nil {
		return d.prefilter, nil
	}
	made, err := newDevicePreFilter(f)
	if err == nil {
		d.prefilter = made
	}
	return made, err
}

// deviceProfile is a profile whose filters go by these devices.
type deviceProfile struct {
	framework.Framework
	devices *Devices
}

// moved is the pods with claims that were removed from nodes, or added, since PreFilter ran.
type moved struct {
	// refreshing is held while PreFilter runs, which clones the state and so this. Mu guards what follows.
	refreshing, mu sync.Mutex
	// removed are away from their nodes, returned were and are back, added are planned.
	removed, returned, added map[types.UID]*corev1.Pod
	// kept are devices that are to be somebody else's, whether anybody has them or not.
	kept []*resourcev1.AllocationResult
	// stale: PreFilter has not seen them.
	stale bool
}

const movedKey fwk.StateKey = "caldera.dev/moved-pods-with-claims"

// Clone implements fwk.StateData.
func (m *moved) Clone() fwk.StateData { return m.clone() }

func (m *moved) clone() *moved {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &moved{removed: maps.Clone(m.removed), returned: maps.Clone(m.returned), added: maps.Clone(m.added), kept: m.kept, stale: m.stale}
}

func newMoved() *moved {
	return &moved{removed: map[types.UID]*corev1.Pod{}, returned: map[types.UID]*corev1.Pod{}, added: map[types.UID]*corev1.Pod{}}
}

func movedIn(state fwk.CycleState) *moved {
	if data, err := state.Read(movedKey); err == nil {
		return data.(*moved)
	}
	return nil
}

// move notes that a pod was removed from a node, or added.
func move(state fwk.CycleState, pod, other *corev1.Pod, removed bool) {
	if len(pod.Spec.ResourceClaims) == 0 || len(other.Spec.ResourceClaims) == 0 {
		return
	}
	m := movedIn(state)
	if m == nil {
		m = newMoved()
		state.Write(movedKey, m)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch uid := other.UID; {
	case removed && m.added[uid] != nil:
		delete(m.added, uid)
	case removed:
		delete(m.returned, uid)
		m.removed[uid] = other
	case m.removed[uid] != nil:
		delete(m.removed, uid)
		m.returned[uid] = other
	default:
		m.added[uid] = other
	}
	// The devices of planned pods matter once there are some of removed pods among them.
	m.stale = m.stale || len(m.removed)+len(m.returned)+len(m.kept) > 0
}

// RunPreFilterPlugins implements framework.Framework. Who plans with claims finds devices gone that are kept for others.
func (f *deviceProfile) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	if job := gang.Planned(state); len(pod.Spec.ResourceClaims) > 0 && job != nil && f.devices.kept != nil {
		if kept := f.devices.kept(job.Key); len(kept) > 0 {
			m := newMoved()
			m.kept, m.stale = kept, true
			state.Write(movedKey, m)
		}
	}
	return f.Framework.RunPreFilterPlugins(ctx, state, pod)
}

// RunPreFilterExtensionAddPod implements framework.Framework.
func (f *deviceProfile) RunPreFilterExtensionAddPod(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, other fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	move(state, pod, other.GetPod(), false)
	return f.Framework.RunPreFilterExtensionAddPod(ctx, state, pod, other, node)
}

// RunPreFilterExtensionRemovePod implements framework.Framework.
func (f *deviceProfile) RunPreFilterExtensionRemovePod(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, other fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	move(state, pod, other.GetPod(), true)
	return f.Framework.RunPreFilterExtensionRemovePod(ctx, state, pod, other, node)
}

// RunFilterPlugins implements framework.Framework.
func (f *deviceProfile) RunFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if len(pod.Spec.ResourceClaims) > 0 {
		if m := movedIn(state); m != nil {
			if status := f.refresh(ctx, state, pod, m); !status.IsSuccess() {
				return status
			}
		}
	}
	return f.Framework.RunFilterPlugins(ctx, state, pod, node)
}

// RunReservePluginsReserve implements framework.Framework. A pod that is being bound has allocated a claim, and the plan's pod shares it: that one's
// Unreserve would take the allocation for its own, and have the scheduler forget it for good. So the plan's pod is made one of those that share it.
func (f *deviceProfile) RunReservePluginsReserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	for _, c := range f.allocated(pod) {
		if err := f.SharedDRAManager().ResourceClaims().SignalClaimPendingAllocation(c.UID, c); err != nil {
			return fwk.AsStatus(fmt.Errorf("sharing the allocation of claim %s/%s: %w", c.Namespace, c.Name, err)).WithPlugin(dynamicresources.Name)
		}
	}
	return f.Framework.RunReservePluginsReserve(ctx, state, pod, node)
}

// allocated are the claims of a pod that have devices.
func (f *deviceProfile) allocated(pod *corev1.Pod) []*resourcev1.ResourceClaim {
	if len(pod.Spec.ResourceClaims) == 0 || f.SharedDRAManager() == nil {
		return nil
	}
	return slices.DeleteFunc(claimsOf(f.SharedDRAManager().ResourceClaims(), pod), func(c *resourcev1.ResourceClaim) bool { return c.Status.Allocation == nil })
}

// refresh has DynamicResources take the moved pods into account. Several nodes may be looked at by one state at a time.
func (f *deviceProfile) refresh(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, m *moved) *fwk.Status {
	m.refreshing.Lock()
	defer m.refreshing.Unlock()
	seen := m.clone()
	if !seen.stale {
		return nil
	}
	p, err := f.devices.preFilter(f.Framework)
	if err != nil {
		return fwk.AsStatus(err)
	}
	status := p.run(ctx, state, pod, seen)
	if !status.IsSuccess() && !status.IsSkip() {
		return status.WithPlugin(dynamicresources.Name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stale = false
	return nil
}

// devicePreFilter is a second instance of DynamicResources. Only its PreFilter is used: the first instance reads what that writes.
type devicePreFilter struct {
	mu     sync.Mutex
	plugin fwk.PreFilterPlugin
	view   *claimView
}

func newDevicePreFilter(f framework.Framework) (*devicePreFilter, error) {
	view := &claimView{ResourceClaimTracker: f.SharedDRAManager().ResourceClaims()}
	h := &deviceHandle{Handle: f, manager: deviceManager{SharedDRAManager: f.SharedDRAManager(), claims: view}}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	plugin, err := dynamicresources.New(context.Background(), &config.DynamicResourcesArgs{}, h, features)
	if err != nil {
		return nil, fmt.Errorf("preparing to look for devices of pods that might be evicted: %w", err)
	}
	prefilter, ok := plugin.(fwk.PreFilterPlugin)
	if !ok {
		return nil, fmt.Errorf("the plugin %s has no PreFilter", plugin.Name())
	}
	return &devicePreFilter{plugin: prefilter, view: view}, nil
}

func (p *devicePreFilter) run(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, m *moved) *fwk.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view.show(pod, m)
	// A state in which the plugin gave up halfway does not know any more which devices to give back.
	then := state.Clone()
	if _, status := p.plugin.PreFilter(ctx, then, pod, nil); !status.IsSuccess() {
		return status
	}
	data, err := then.Read(dynamicresources.Name)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("reading what %s found: %w", dynamicresources.Name, err))
	}
	state.Write(dynamicresources.Name, data)
	return nil
}

// deviceHandle is a profile as DynamicResources sees it. The plugin adds an index to the informer of pods. Its name has that of the profile,
// and there must not be two of one name.
type deviceHandle struct {
	fwk.Handle
	manager deviceManager
}

// SharedDRAManager implements fwk.Handle.
func (h *deviceHandle) SharedDRAManager() fwk.SharedDRAManager { return h.manager }

// ProfileName implements fwk.Handle.
func (h *deviceHandle) ProfileName() string { return h.Handle.ProfileName() + "/caldera-evictions" }

type deviceManager struct {
	fwk.SharedDRAManager
	claims fwk.ResourceClaimTracker
}

// ResourceClaims implements fwk.SharedDRAManager.
func (m deviceManager) ResourceClaims() fwk.ResourceClaimTracker { return m.claims }

// claimView is the claims as they would be with pods removed.
type claimView struct {
	fwk.ResourceClaimTracker
	// planned are those claims of the pod that is looked at which have devices because the pod is planned: they are looked for anew.
	planned sets.Set[types.UID]
	// free are devices that nobody has once the pods are removed; taken are those that somebody has after all: planned pods, and those that are back.
	free, taken []*resourcev1.AllocationResult
}

// show has the view be the claims for a pod with others moved.
func (v *claimView) show(pod *corev1.Pod, m *moved) {
	v.planned, v.free, v.taken = sets.New[types.UID](), nil, slices.Clone(m.kept)
	others := sets.New[types.UID]()
	for _, planned := range m.added {
		if planned.UID == pod.UID {
			continue
		}
		for _, c := range claimsOf(v, planned) {
			others.Insert(c.UID)
			v.taken = v.pending(v.taken, c)
		}
	}
	// What the pod shares with others that are planned it can have no part in yet, as in upstream. What it names and has devices is its own to use.
	seen := sets.New[types.UID]()
	for _, c := range claimsOf(v, pod) {
		if seen.Insert(c.UID); !others.Has(c.UID) {
			v.planned.Insert(c.UID)
			v.free = v.pending(v.free, c)
		}
	}
	for _, gone := range m.removed {
		for _, c := range claimsOf(v, gone) {
			if !seen.Has(c.UID) && freed(c, m) {
				seen.Insert(c.UID)
				v.free = append(v.free, c.Status.Allocation)
			}
		}
	}
	for _, back := range m.returned {
		for _, c := range claimsOf(v, back) {
			if c.Status.Allocation != nil && !freed(c, m) {
				v.taken = append(v.taken, c.Status.Allocation)
			}
		}
	}
}

// claimsOf are the claims of a pod that exist.
func claimsOf(tracker fwk.ResourceClaimTracker, pod *corev1.Pod) (claims []*resourcev1.ResourceClaim) {
	for _, name := range model.ClaimsOf(pod) {
		if c, err := tracker.Get(pod.Namespace, name); err == nil {
			claims = append(claims, c)
		}
	}
	return claims
}

// pending adds the devices that a claim is about to have.
func (v *claimView) pending(to []*resourcev1.AllocationResult, c *resourcev1.ResourceClaim) []*resourcev1.AllocationResult {
	if a := v.ResourceClaimTracker.GetPendingAllocation(c.UID); a != nil {
		return append(to, a)
	}
	return to
}

// freed reports whether a claim has devices for nobody but removed pods: its controller takes them back once these are gone.
func freed(c *resourcev1.ResourceClaim, m *moved) bool {
	for _, by := range c.Status.ReservedFor {
		if m.removed[by.UID] == nil {
			return false
		}
	}
	return c.Status.Allocation != nil
}

// GetPendingAllocation implements fwk.ResourceClaimTracker.
func (v *claimView) GetPendingAllocation(claim types.UID) *resourcev1.AllocationResult {
	if v.planned.Has(claim) {
		return nil
	}
	return v.ResourceClaimTracker.GetPendingAllocation(claim)
}

// ListAllAllocatedDevices implements fwk.ResourceClaimTracker.
func (v *claimView) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	devices, err := v.ResourceClaimTracker.ListAllAllocatedDevices()
	if err != nil {
		return nil, err
	}
	for _, a := range v.free {
		eachDevice(a, func(id structured.DeviceID, _ *resourcev1.DeviceRequestAllocationResult) { devices.Delete(id) })
	}
	for _, a := range v.taken {
		eachDevice(a, func(id structured.DeviceID, _ *resourcev1.DeviceRequestAllocationResult) { devices.Insert(id) })
	}
	return devices, nil
}

// GatherAllocatedState implements fwk.ResourceClaimTracker.
func (v *claimView) GatherAllocatedState() (*structured.AllocatedState, error) {
	state, err := v.ResourceClaimTracker.GatherAllocatedState()
	if err != nil {
		return nil, err
	}
	for _, a := range v.free {
		eachDevice(a, func(id structured.DeviceID, r *resourcev1.DeviceRequestAllocationResult) {
			if r.ShareID == nil {
				state.AllocatedDevices.Delete(id)
				return
			}
			state.AllocatedSharedDeviceIDs.Delete(structured.MakeSharedDeviceID(id, r.ShareID))
			state.AggregatedCapacity.Remove(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
		})
	}
	for _, a := range v.taken {
		eachDevice(a, func(id structured.DeviceID, r *resourcev1.DeviceRequestAllocationResult) {
			if r.ShareID == nil {
				state.AllocatedDevices.Insert(id)
			}
		})
	}
	return state, nil
}

// eachDevice calls do for the devices of an allocation that nobody else may have at the same time.
func eachDevice(a *resourcev1.AllocationResult, do func(structured.DeviceID, *resourcev1.DeviceRequestAllocationResult)) {
	for i := range a.Devices.Results {
		if r := &a.Devices.Results[i]; !ptr.Deref(r.AdminAccess, false) {
			do(structured.MakeDeviceID(r.Driver, r.Pool, r.Device), r)
		}
	}
}
