// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package skiprecheck

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
)

func TestTermsOfTrustedPodsAreLeftOut(t *testing.T) {
	t.Parallel()
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	terms := []corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: corev1.LabelTopologyZone}}
	onNodes := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: "disk", Operator: corev1.NodeSelectorOpExists,
		}}}},
	}}
	spread := func(action corev1.UnsatisfiableConstraintAction) []corev1.TopologySpreadConstraint {
		return []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: action, LabelSelector: selector,
		}}
	}
	with := func(affinity *corev1.Affinity, constraints []corev1.TopologySpreadConstraint) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{
				Affinity: affinity, TopologySpreadConstraints: constraints, NodeSelector: map[string]string{"zone": "a"},
				Containers: []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{HostPort: 80}}}},
			},
		}
	}
	all := with(&corev1.Affinity{
		NodeAffinity:    onNodes,
		PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms},
	}, spread(corev1.DoNotSchedule))
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		trusted bool
		want    *corev1.Pod
	}{
		"a trusted pod":              {all, true, with(&corev1.Affinity{NodeAffinity: onNodes}, spread(corev1.ScheduleAnyway))},
		"one that is not":            {all, false, all},
		"one with terms about nodes": {with(&corev1.Affinity{NodeAffinity: onNodes}, nil), true, with(&corev1.Affinity{NodeAffinity: onNodes}, nil)},
		"one without any":            {with(nil, nil), true, with(nil, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := c.pod.DeepCopy()
			var got *corev1.Pod
			find := around(func(_ context.Context, _ framework.Framework, _ fwk.CycleState, queued *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
				got = queued.Pod
				return scheduler.ScheduleResult{SuggestedHost: "n"}, nil
			}, func(framework.Framework, types.UID) bool { return c.trusted })
			info, err := framework.NewPodInfo(c.pod)
			if err != nil {
				t.Fatal(err)
			}
			result, err := find(t.Context(), nil, nil, &framework.QueuedPodInfo{PodInfo: info})
			if err != nil || result.SuggestedHost != "n" {
				t.Errorf("found %q (%v), want n", result.SuggestedHost, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the cycle is of another pod (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, c.pod); diff != "" {
				t.Errorf("the pod itself was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// listed is a profile that has plugins and extenders.
type listed struct {
	framework.Framework
	filters   []string
	extenders []fwk.Extender
}

func (l listed) ListPlugins() *config.Plugins {
	enabled := &config.Plugins{PreFilter: config.PluginSet{Enabled: []config.Plugin{{Name: names.Gang}}}}
	for _, name := range l.filters {
		enabled.Filter.Enabled = append(enabled.Filter.Enabled, config.Plugin{Name: name})
	}
	return enabled
}

func (l listed) Extenders() []fwk.Extender { return l.extenders }

func TestOthersMayReadTheTerms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profile listed
		want    bool
	}{
		"plugins that are known":   {listed{filters: []string{names.Gang, "NodeResourcesFit"}}, true},
		"a plugin of somebody":     {listed{filters: []string{names.Gang, "RackAware"}}, false},
		"an extender of Volcano's": {listed{filters: []string{names.Extender, names.Gang}}, false},
		"an extender of upstream":  {listed{filters: []string{names.Gang}, extenders: make([]fwk.Extender, 1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := readsTermsOnlyThere(c.profile); got != c.want {
				t.Errorf("only plugins that are known read terms: %t, want %t", got, c.want)
			}
		})
	}
}
