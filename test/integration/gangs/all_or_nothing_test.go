// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// partials measures how many pods of others are bound while a gang is bound below its minimum. How long that takes would measure the machine.
type partials struct {
	mu    sync.Mutex // guards the rest
	min   map[string]int
	bound map[string]int
	// all is how many pods are bound, and since how many were when a gang had its first.
	all   int
	since map[string]int
	most  int
}

func (p *partials) observe(before, after *corev1.Pod) {
	if after == nil || after.Spec.NodeName == "" || before != nil && before.Spec.NodeName != "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	gang := after.Labels[env.GroupLabel]
	p.all++
	p.bound[gang]++
	switch p.bound[gang] {
	case p.min[gang]:
		if from, ok := p.since[gang]; ok {
			p.most = max(p.most, p.all-from-p.min[gang]+1)
			delete(p.since, gang)
		}
	case 1:
		p.since[gang] = p.all
	}
}

// TestRandomGangsStartWholeAndLeaveNothingIdle does so with Volcano's PodGroups and with Kubernetes' own. It creates 200 gangs for which there is
// room for about half, watches every bind, and waits until no gang is partly bound and none waits that would fit. The pods of some are there
// before their PodGroup.
func TestRandomGangsStartWholeAndLeaveNothingIdle(t *testing.T) {
	t.Parallel()
	o := localcluster.Options{Nodes: 10, Shapes: []string{"cpu=48,memory=256Gi"}}
	t.Run("of Volcano", func(t *testing.T) { startWhole(t, o, false) })
	t.Run("of Kubernetes", func(t *testing.T) { startWhole(t, env.NativeGroups(o), true) })
}

func startWhole(t *testing.T, o localcluster.Options, native bool) {
	t.Parallel()
	const gangs = 200
	p := &partials{min: map[string]int{}, bound: map[string]int{}, since: map[string]int{}}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var all []env.Gang
	for i := range gangs {
		size := 1 + random.IntN(12)
		g := env.Gang{Name: fmt.Sprintf("gang-%d", i), Native: native, Min: size, Size: size, CPU: fmt.Sprintf("%dm", 250*(1+random.IntN(5)))}
		p.min[g.Name] = size
		all = append(all, g)
	}
	e := env.New(t, o, p.observe)
	e.StartScheduler(t)
	for _, g := range all {
		if random.IntN(4) == 0 {
			e.CreatePods(t, g.Members()...)
			e.CreateGroup(t, g)
		} else {
			e.Create(t, g)
		}
	}
	// A gang that was let in before its pods came is promised room that it may not find. For stalledAfter, ten seconds, that
	// keeps out others that would fit.
	env.Eventually(t, time.Minute, func() string { return idle(t, e, all) })

	p.mu.Lock()
	most, open := p.most, len(p.since)
	p.mu.Unlock()
	if open > 0 {
		t.Errorf("%d gangs are bound below their minimum", open)
	}
	// The members of a gang are bound together, and the oldest gang first.
	if most > 100 {
		t.Errorf("while a gang was bound below its minimum, %d pods of others were bound", most)
	}
	running := started(t, e, all)
	if running == gangs {
		t.Error("every gang runs: the cluster is too large for this test")
	}
	t.Logf("%d of %d gangs run; at most %d pods of others were bound while a gang was bound below its minimum", running, gangs, most)
}

func started(t *testing.T, e *env.Env, all []env.Gang) int {
	n := 0
	for _, g := range all {
		if bound, _ := e.Bound(t, g.Name); bound > 0 {
			n++
		}
	}
	return n
}

// idle packs every waiting gang, whose pods are equal, into what is idle, and names one that fits or is bound in part. Nothing ends
// here: once there is none, there never is.
func idle(t *testing.T, e *env.Env, all []env.Gang) string {
	nodes, err := e.Kube.CoreV1().Nodes().List(t.Context(), listAll)
	if err != nil {
		t.Fatal(err)
	}
	free := map[string]int64{}
	for i := range nodes.Items {
		free[nodes.Items[i].Name] = nodes.Items[i].Status.Allocatable.Cpu().MilliValue()
	}
	for _, g := range all {
		for _, pod := range e.Members(t, g.Name) {
			if pod.Spec.NodeName != "" {
				free[pod.Spec.NodeName] -= pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
			}
		}
	}
	for _, g := range all {
		bound, known := e.Bound(t, g.Name)
		switch {
		case bound == g.Size:
			continue
		case bound != 0, known < g.Size:
			return fmt.Sprintf("%d of %d pods of gang %s have nodes, %d are known", bound, g.Size, g.Name, known)
		}
		request := resource.MustParse(g.CPU)
		places := int64(0)
		for _, milli := range free {
			places += milli / request.MilliValue()
		}
		if places >= int64(g.Size) {
			return fmt.Sprintf("gang %s of %d pods of %s waits although there is room for %d: %+v", g.Name, g.Size, g.CPU, places,
				e.Core.Dispatcher.View().Reasons()[model.JobKey{Source: model.FromVolcano, Namespace: env.Namespace, Name: g.Name}])
		}
	}
	return ""
}
