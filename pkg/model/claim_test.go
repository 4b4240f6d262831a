// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

const gpus corev1.ResourceName = "deviceclass/gpu"

// claimed has a pod name a claim that others may name, too.
func claimed(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: &name})
	}
}

// templated has a pod have a claim of its own, which is not made yet.
func templated(template string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "own", ResourceClaimTemplateName: &template})
	}
}

// made says the name of the claim that was made for a pod.
func made(p *corev1.Pod) {
	p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "own", ResourceClaimName: new(p.Name + "-own")}}
}

func devices(n int64) resource.Vector { return resource.Vector{{Name: gpus, Value: n}} }

// claimWorld is the claims and pods as somebody remembers them who keeps nothing else.
type claimWorld struct {
	state  *model.State
	pods   map[string]*corev1.Pod
	claims map[string]*model.Claim
	// templates are how many devices each asks for.
	templates map[string]int64
}

// want is how many devices a pod has that nobody else has, and which it shares.
func (w *claimWorld) want(p *corev1.Pod) (own int64, shared []string) {
	for _, c := range p.Spec.ResourceClaims {
		switch {
		case c.ResourceClaimName != nil:
			if w.claims[*c.ResourceClaimName] != nil && !slices.Contains(shared, *c.ResourceClaimName) {
				shared = append(shared, *c.ResourceClaimName)
			}
		case len(p.Status.ResourceClaimStatuses) > 0 && w.claims[p.Name+"-own"] != nil:
			own += w.claims[p.Name+"-own"].Devices.Get(gpus)
		default:
			own += w.templates[*c.ResourceClaimTemplateName]
		}
	}
	return own, shared
}

func (w *claimWorld) put(p *corev1.Pod) {
	w.pods[p.Name] = p
	w.state.UpsertPod(p)
}

func (w *claimWorld) putClaim(name string, n int64, pod types.UID) {
	w.claims[name] = &model.Claim{Namespace: "ns", Name: name, Pod: pod, Devices: devices(n)}
	w.state.UpsertClaim(w.claims[name])
}

// step does something to the world.
func (w *claimWorld) step(t *rapid.T) {
	name := fmt.Sprintf("pod-%d", rapid.IntRange(0, 3).Draw(t, "pod"))
	p := w.pods[name]
	shared := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "claim")
	switch op := rapid.SampledFrom([]string{"create", "made", "bind", "trim", "delete", "claim", "no claim", "own claim", "template", "no template"}).Draw(t, "op"); {
	case op == "create" && p == nil:
		options := [][]func(*corev1.Pod){{in("g")}, {in("g"), claimed(shared)}, {in("g"), templated("t")}, {in("g"), templated("t"), claimed("x"), claimed("y")}, {claimed(shared), claimed(shared)}}
		w.put(newPod(name, options[rapid.IntRange(0, len(options)-1).Draw(t, "kind")]...))
	case op == "made" && p != nil:
		p = p.DeepCopy()
		made(p)
		w.put(p)
	case op == "bind" && p != nil:
		p = p.DeepCopy()
		p.Spec.NodeName, p.Status.Phase = "node", corev1.PodRunning
		w.put(p)
	case op == "trim" && p != nil:
		// What is kept of a finished pod.
		p = p.DeepCopy()
		p.Spec.ResourceClaims, p.Status = nil, corev1.PodStatus{Phase: corev1.PodSucceeded}
		w.put(p)
	case op == "delete" && p != nil:
		delete(w.pods, name)
		w.state.DeletePod(p.UID)
	case op == "claim":
		w.putClaim(shared, rapid.Int64Range(0, 4).Draw(t, "devices"), "")
	case op == "no claim":
		delete(w.claims, shared)
		w.state.DeleteClaim("ns", shared, false)
	case op == "own claim" && p != nil:
		w.putClaim(name+"-own", rapid.Int64Range(0, 4).Draw(t, "devices"), p.UID)
	case op == "template":
		w.templates["t"] = rapid.Int64Range(0, 4).Draw(t, "devices")
		w.state.UpsertClaim(&model.Claim{Namespace: "ns", Name: "t", Template: true, Devices: devices(w.templates["t"])})
	case op == "no template":
		delete(w.templates, "t")
		w.state.DeleteClaim("ns", "t", true)
	}
}

// check compares what tasks are charged, and jobs with their tasks.
func (w *claimWorld) check(t *rapid.T) {
	jobs := map[model.JobKey]bool{}
	for name, p := range w.pods {
		task := w.state.Task(p.UID)
		own, shared := w.want(p)
		want := task.Request.Clone()
		want.Add(devices(own))
		for _, claim := range shared {
			want.Add(w.claims[claim].Devices)
		}
		if got := task.Charge.Counted(); !got.Equal(want) || task.BestEffort != want.BestEffort() {
			t.Fatalf("pod %s is charged %s (best effort: %t), want %s", name, got, task.BestEffort, want)
		}
		jobs[task.Job] = true
	}
	for key := range jobs {
		job := w.state.Job(key)
		var allocated, requested resource.Vector
		waiting := map[string]int{}
		for _, task := range job.Tasks {
			switch task.Status {
			case model.Running:
				allocated.Add(task.Charge)
				requested.Add(task.Charge)
			case model.Pending:
				requested.Add(task.Charge)
				waiting[task.Charge.String()]++
			}
		}
		if !job.Usage.Allocated.Equal(allocated) || !job.Usage.Requested.Equal(requested) {
			t.Fatalf("job %s holds %s and asks for %s, want %s and %s", key, job.Usage.Allocated, job.Usage.Requested, allocated, requested)
		}
		for _, d := range job.Pending {
			if waiting[d.Charge.String()] -= d.Count; waiting[d.Charge.String()] == 0 {
				delete(waiting, d.Charge.String())
			}
		}
		if len(waiting) > 0 {
			t.Fatalf("job %s has waiting tasks besides its demands: %v", key, slices.Sorted(maps.Keys(waiting)))
		}
	}
}

// TestQueuesAreChargedForTheClaimsThatThereAre, whatever comes first, changes, or goes away.
func TestQueuesAreChargedForTheClaimsThatThereAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &claimWorld{state: model.NewState(), pods: map[string]*corev1.Pod{}, claims: map[string]*model.Claim{}, templates: map[string]int64{}}
		w.state.AddScheduler(batch)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.step(t)
			w.check(t)
		}
	})
}

// TestTheMinimumOfAJobHasTheDevicesOfItsPods: a PodGroup says what its minimum needs of nodes, its pods what they need of devices.
func TestTheMinimumOfAJobHasTheDevicesOfItsPods(t *testing.T) {
	state := model.NewState()
	state.AddScheduler(batch)
	key := model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "g"}
	state.UpsertClaim(&model.Claim{Namespace: "ns", Name: "x", Devices: devices(4)})
	state.UpsertClaim(&model.Claim{Namespace: "ns", Name: "t", Template: true, Devices: devices(2)})
	group := &model.Group{UID: "g", MinMember: 2, MinResources: resource.FromList(amounts("cpu", "2"))}
	state.UpsertGroup(key, group)
	for i := range 3 {
		state.UpsertPod(newPod(fmt.Sprintf("g-%d", i), in("g"), templated("t"), claimed("x")))
	}
	if got := state.Job(key).Claim().Counted(); got.Get(gpus) != 2*2+4 || got.Get(corev1.ResourceCPU) != 2000 {
		t.Errorf("two pods with two devices each and a claim of four claim %s", got)
	}
	said := *group
	said.MinResources = resource.FromList(amounts("cpu", "2", string(gpus), "1"))
	state.UpsertGroup(key, &said)
	if got := state.Job(key).Claim().Counted(); got.Get(gpus) != 2*2+4 {
		t.Errorf("a job whose pods share devices claims %s, whatever its PodGroup says", got)
	}
	for i := range 3 {
		state.UpsertPod(newPod(fmt.Sprintf("g-%d", i), in("g"), templated("t"), claimed("x"), on("node"), phase(corev1.PodRunning)))
	}
	job := state.Job(key)
	committed := job.Usage.Allocated.Clone()
	committed.Add(job.Claim())
	committed.Sub(job.Elastic())
	if got := committed.Counted().Get(gpus); got != 3*2+4 {
		t.Errorf("of three pods that run %d devices are committed", got)
	}
	for i := range 3 {
		state.UpsertPod(newPod(fmt.Sprintf("g-%d", i), in("g"), templated("t")))
	}
	if got := state.Job(key).Claim(); got.Get(gpus) != 1 {
		t.Errorf("a job whose PodGroup says one device claims %s", got)
	}
}

// TestAPodIsChargedOnceForAClaimThatItNamesTwice, also for one that was made for it.
func TestAPodIsChargedOnceForAClaimThatItNamesTwice(t *testing.T) {
	state := model.NewState()
	state.AddScheduler(batch)
	pod := newPod("p", claimed("x"))
	claimed("x")(pod)
	for _, owner := range []types.UID{"", pod.UID} {
		state.UpsertClaim(&model.Claim{Namespace: "ns", Name: "x", Pod: owner, Devices: devices(2)})
		state.UpsertPod(pod)
		if got := state.Task(pod.UID).Charge.Counted().Get(gpus); got != 2 {
			t.Errorf("it is charged %d devices for a claim of two, made for pod %q", got, owner)
		}
	}
}

// TestAPodThatIsToldOfItsClaimIsNews: whoever was refused because the claim was not there is tried again.
func TestAPodThatIsToldOfItsClaimIsNews(t *testing.T) {
	state := model.NewState()
	state.AddScheduler(batch)
	pod := newPod("p", templated("t"))
	state.UpsertPod(pod)
	if c := state.UpsertPod(pod.DeepCopy()); c.Events&model.DevicesChanged != 0 {
		t.Error("an update that says nothing new is news of devices")
	}
	told := pod.DeepCopy()
	made(told)
	if c := state.UpsertPod(told); c.Events&model.DevicesChanged == 0 {
		t.Error("that its claim is made is no news of devices")
	}
}
