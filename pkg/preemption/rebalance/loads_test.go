// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/rebalance"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// usual are thresholds of 20 and targets of 70 percent.
var usual = arguments.LowNodeUtilization{
	Low: arguments.Utilization{CPU: 20, Memory: 20}, Target: arguments.Utilization{CPU: 70, Memory: 70},
}

// TestWhoIsMoved has the reference's computed examples (section 4.12), and what differs from Volcano.
func TestWhoIsMoved(t *testing.T) {
	t.Parallel()
	all := arguments.Utilization{CPU: 100, Memory: 100}
	// hot has ten pods on a node C that is short of cores; A takes some of them, B is neither.
	hot := func() *world {
		return newWorld().loaded("a", 10, 10).loaded("b", 50, 50).loaded("c", 90, 30).pods("web", "c", 1, 10)
	}
	for name, tc := range map[string]struct {
		world *world
		by    *arguments.LowNodeUtilization
		want  []string
	}{
		// 90 % less 10 for each pod: 80, 70, 60.
		"until the load is below the target": {world: hot(), want: []string{"web-pod-0", "web-pod-1", "web-pod-2"}},
		"all nodes are used little":          {world: newWorld().loaded("a", 10, 10).loaded("b", 10, 10).pods("web", "a", 1, 5)},
		"no node is used little":             {world: newWorld().loaded("a", 20, 10).loaded("c", 90, 30).pods("web", "c", 1, 5)},
		"no node is used too much":           {world: newWorld().loaded("a", 10, 10).loaded("c", 70, 70).pods("web", "c", 1, 5)},
		"by Volcano's defaults":              {world: hot(), by: &arguments.LowNodeUtilization{Low: all, Target: all}},
		"as much as the others may take: 70 - 55 percent of 10 cores": {
			world: newWorld().loaded("a", 55, 10).loaded("c", 100, 30).pods("web", "c", 1, 10),
			by:    &arguments.LowNodeUtilization{Low: arguments.Utilization{CPU: 60, Memory: 60}, Target: usual.Target},
			want:  []string{"web-pod-0"},
		},
		"a load that is not known is not 0 percent": {world: newWorld().node("a").loaded("c", 90, 30).pods("web", "c", 1, 10)},
		"nor 100": {world: newWorld().loaded("a", 10, 10).node("c").pods("web", "c", 1, 10)},
		"the fullest node first": {
			world: newWorld().loaded("a", 10, 45).loaded("c", 80, 0).loaded("d", 75, 60).
				pods("web", "c", 1, 1, asking("2", "2Gi")).pods("etl", "d", 1, 1, asking("2", "2Gi")),
			by:   &arguments.LowNodeUtilization{Low: arguments.Utilization{CPU: 20, Memory: 50}, Target: usual.Target},
			want: []string{"etl-pod-0"},
		},
		"without a priority first, then the lowest, then the worst service": {
			world: newWorld().loaded("a", 0, 0).loaded("c", 120, 30).
				pods("e", "c", 0, 1, priority(5)).pods("d", "c", 0, 1, priority(1), serving(corev1.PodQOSGuaranteed)).
				pods("c", "c", 0, 1, priority(1), serving(corev1.PodQOSBurstable)).pods("b", "c", 0, 1, priority(1), serving(corev1.PodQOSBestEffort)).
				pods("a", "c", 0, 1, serving(corev1.PodQOSGuaranteed)),
			want: []string{"a-pod-0", "b-pod-0", "c-pod-0", "d-pod-0", "e-pod-0"},
		},
		"who asks for nothing stays":                      {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 1, 3, asking("0", "0"))},
		"who asks for what there is enough of stays":      {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 1, 3, asking("0", "1Gi"))},
		"a node that takes no pods is no place to go":     {world: newWorld().loaded("a", 10, 10, cordoned).loaded("c", 90, 30).pods("web", "c", 1, 3)},
		"nor is one with a taint that the other has not":  {world: newWorld().loaded("a", 10, 10, tainted).loaded("c", 90, 30).pods("web", "c", 1, 3)},
		"one with the same taint is":                      {world: newWorld().loaded("a", 10, 10, tainted).loaded("c", 79, 30, tainted).pods("web", "c", 1, 3), want: []string{"web-pod-0"}},
		"nor one of another node group":                   {world: newWorld().loaded("a", 10, 10, labelled(model.NodeGroupLabel, "g")).loaded("c", 90, 30).pods("web", "c", 1, 3)},
		"nor one of a revocable zone":                     {world: newWorld().loaded("a", 10, 10, labelled(model.RevocableZoneKey, "z")).loaded("c", 90, 30).pods("web", "c", 1, 3)},
		"nor one that others ask for, whatever they use":  {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("idle", "a", 1, 10).pods("web", "c", 1, 3)},
		"nor one that the pod does not select":            {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 1, 3, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} })},
		"who has terms about other pods stays":            {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 1, 3, func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}} })},
		"who has a port of the node stays":                {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 1, 3, func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} })},
		"who would not be created again stays":            {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 1, 3, func(p *corev1.Pod) { p.OwnerReferences = nil })},
		"who is not to be evicted stays":                  {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 1, 3, annotated(model.PreemptableKey, "false"))},
		"whom a gang needs stays":                         {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 9, 10), want: []string{"web-pod-0"}},
		"whom a budget protects stays":                    {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 1, 10).budget("web", 2), want: []string{"web-pod-0", "web-pod-1"}},
		"of a gang that has nothing to spare nobody goes": {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 3, 3)},
		"a budget does not choose":                        {world: newWorld().loaded("a", 10, 10).loaded("c", 60, 30).pods("web", "c", 1, 10).budget("web", 2)},
		"who is critical stays":                           {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 1, 3, func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" })},
		"who was scheduled a short while ago stays":       {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 1, 3, annotated(model.CooldownKey, "2h"), scheduledAnHourAgo)},
		"and goes when the cooldown is over":              {world: newWorld().loaded("a", 10, 10).loaded("c", 79, 30).pods("web", "c", 1, 3, annotated(model.CooldownKey, "30m"), scheduledAnHourAgo), want: []string{"web-pod-0"}},
		"pods of another scheduler are none of its tasks": {world: newWorld().loaded("a", 10, 10).loaded("c", 90, 30).pods("web", "c", 1, 3, func(p *corev1.Pod) { p.Spec.SchedulerName = "other" })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			by := &usual
			if tc.by != nil {
				by = tc.by
			}
			got := names(rebalance.Spread(by, tc.world.nodes(), tc.world.protection(guards()...)))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("moved (-want,+got)\n%s", diff)
			}
		})
	}
}

func scheduledAnHourAgo(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
}

func TestGuardsThatAreSwitchedOffProtectNobody(t *testing.T) {
	t.Parallel()
	w := newWorld().loaded("a", 10, 10).loaded("c", 79, 30).pods("web", "c", 10, 10).budget("web", 0)
	plugins := guards()
	for i := range plugins {
		plugins[i].Switches = map[config.Switch]bool{config.EnableVictim: false}
	}
	if got := names(rebalance.Spread(&usual, w.nodes(), w.protection(plugins...))); len(got) != 1 {
		t.Errorf("moved %v, want one pod", got)
	}
}

func TestWhyAPodIsMoved(t *testing.T) {
	t.Parallel()
	w := newWorld().loaded("a", 10, 10).loaded("c", 30, 90.4).pods("web", "c", 1, 1)
	got := rebalance.Spread(&usual, w.nodes(), w.protection())
	const want = "rescheduling: 90% of the memory of node c is in use, and 70% is the target"
	if len(got) != 1 || got[0].Why != want {
		t.Errorf("moved %+v, want one because %q", got, want)
	}
}
