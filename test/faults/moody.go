// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// moodyName names the plugin moody.
const moodyName = "Moody"

// moody is a plugin that mostly refuses nothing. It takes its time if the scenario is drowsy: else no simulated time would pass in a scheduling cycle,
// and nothing would ever happen in the middle of one. It does not heed its context, as many do not. And it errs over pods of some jobs, as an
// extender does that went down. Only who is unwelcome is refused by each node, after a while.
type moody struct{ line *line }

var (
	_ fwk.FilterPlugin  = moody{}
	_ fwk.ReservePlugin = moody{}
)

// addMoody has a scheduler's profiles ask it.
func addMoody(conf *schedulerconfig.KubeSchedulerConfiguration) {
	for i := range conf.Profiles {
		at := conf.Profiles[i].Plugins
		for _, set := range []*schedulerconfig.PluginSet{&at.Filter, &at.Reserve} {
			set.Enabled = append(set.Enabled, schedulerconfig.Plugin{Name: moodyName})
		}
	}
}

func (l *line) moody() runtime.Registry {
	build := func(context.Context, apiruntime.Object, fwk.Handle) (fwk.Plugin, error) { //nolint:unparam // upstream's signature
		return moody{l}, nil
	}
	return runtime.Registry{moodyName: build}
}

// Name implements fwk.Plugin.
func (moody) Name() string { return moodyName }

// Filter implements fwk.FilterPlugin.
func (m moody) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if pod.Annotations[unwelcome] != "" {
		time.Sleep(refusing)
		return fwk.NewStatus(fwk.Unschedulable, "not here")
	}
	m.line.doze("whether " + pod.Name + " may go to " + node.Node().Name)
	return fwk.AsStatus(m.line.errs(pod.Labels[jobLabel], m.line.phase() == dispatch.Placing))
}

// Reserve implements fwk.ReservePlugin.
func (m moody) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	m.line.doze("that " + pod.Name + " has " + node)
	return nil
}

// Unreserve implements fwk.ReservePlugin.
func (moody) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}

// doze lets time pass over a question: mostly none, now and then half a second, seldom more than a turn may last. Of searches for victims there are
// few, and they take longer.
func (l *line) doze(question string) {
	if !l.s.Drowsy {
		return
	}
	nth := l.asked(question)
	if nth < 0 {
		return
	}
	question = l.name + ": " + question
	moment, of := l.moment(), l.pick("doze over "+question, nth, 50)
	if moment == string(dispatch.Preempting) {
		of /= 4
	}
	most := 500 * time.Millisecond
	switch {
	case of == 0:
		most = 12 * time.Second
	case of > 10:
		return
	}
	l.tell(moment)
	time.Sleep(time.Millisecond + time.Duration(l.pick(question, nth, int(most))))
}

// asked says how often something was asked before by the same process; negative if nothing fails any more.
func (l *line) asked(question string) (times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.healed {
		return -1
	}
	key := l.name + " asked " + question
	times = l.sent[key]
	l.sent[key]++
	return times
}
