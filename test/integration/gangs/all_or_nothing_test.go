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
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// partials measures how long each gang is bound below its minimum.
type partials struct {
	mu      sync.Mutex // guards the rest
	min     map[string]int
	bound   map[string]int
	since   map[string]time.Time
	longest time.Duration
	last    time.Time
}

func (p *partials) observe(before, after *corev1.Pod) {
	if after == nil || after.Spec.NodeName == "" || before != nil && before.Spec.NodeName != "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	gang := after.Labels[env.GroupLabel]
	p.last = time.Now()
	p.bound[gang]++
	switch p.bound[gang] {
	case p.min[gang]:
		if from, ok := p.since[gang]; ok {
			p.longest = max(p.longest, p.last.Sub(from))
			delete(p.since, gang)
		}
	case 1:
		p.since[gang] = p.last
	}
}

func (p *partials) quiet(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.last.IsZero() && time.Since(p.last) > d
}

// TestRandomGangsStartWholeAndLeaveNothingIdle creates 200 gangs for which there is room for about half, watches every
// bind, and checks at the end that no gang is partly bound and none waits that would fit.
func TestRandomGangsStartWholeAndLeaveNothingIdle(t *testing.T) {
	const nodes, coresPerNode, gangs = 10, 48, 200
	p := &partials{min: map[string]int{}, bound: map[string]int{}, since: map[string]time.Time{}}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var all []env.Gang
	for i := range gangs {
		size := 1 + random.IntN(12)
		g := env.Gang{Name: fmt.Sprintf("gang-%d", i), Min: size, Size: size, CPU: fmt.Sprintf("%dm", 250*(1+random.IntN(5)))}
		p.min[g.Name] = size
		all = append(all, g)
	}
	e := env.New(t, localcluster.Options{Nodes: nodes, Shapes: []string{fmt.Sprintf("cpu=%d,memory=256Gi", coresPerNode)}}, p.observe)
	e.StartScheduler(t)
	for _, g := range all {
		e.Create(t, g)
	}
	env.Eventually(t, 2*time.Minute, func() string {
		if !p.quiet(5 * time.Second) {
			return "gangs are still being bound"
		}
		return ""
	})

	p.mu.Lock()
	longest, open := p.longest, len(p.since)
	p.mu.Unlock()
	if open > 0 {
		t.Errorf("%d gangs are bound below their minimum", open)
	}
	// A bind takes milliseconds; a gang of 12 that takes seconds was waiting for something else.
	if longest > 5*time.Second {
		t.Errorf("a gang was bound below its minimum for %s", longest)
	}
	checkNothingIdle(t, e, all)
	t.Logf("%d of %d gangs run; longest time below a minimum %s", started(t, e, all), gangs, longest)
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

// checkNothingIdle packs every waiting gang, whose pods are equal, into what is idle.
func checkNothingIdle(t *testing.T, e *env.Env, all []env.Gang) {
	nodes, err := e.Kube.CoreV1().Nodes().List(t.Context(), listAll)
	if err != nil {
		t.Fatal(err)
	}
	idle := map[string]int64{}
	for i := range nodes.Items {
		idle[nodes.Items[i].Name] = nodes.Items[i].Status.Allocatable.Cpu().MilliValue()
	}
	waiting := 0
	for _, g := range all {
		for _, pod := range e.Members(t, g.Name) {
			if pod.Spec.NodeName != "" {
				idle[pod.Spec.NodeName] -= pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
			}
		}
	}
	for _, g := range all {
		bound, size := e.Bound(t, g.Name)
		if bound == size {
			continue
		}
		waiting++
		if bound != 0 {
			t.Errorf("%d of %d pods of gang %s have nodes", bound, size, g.Name)
		}
		request := resource.MustParse(g.CPU)
		places := int64(0)
		for _, milli := range idle {
			places += milli / request.MilliValue()
		}
		if places >= int64(size) {
			t.Errorf("gang %s of %d pods of %s waits although there is room for %d", g.Name, size, g.CPU, places)
		}
	}
	if waiting == 0 {
		t.Error("every gang runs: the cluster is too large for this test")
	}
}
