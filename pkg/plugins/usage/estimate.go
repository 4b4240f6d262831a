// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/node"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// amounts are cores in millicores and memory in bytes.
type amounts struct{ cpu, memory float64 }

// fill is how full a node is: what was measured, and what is estimated for pods that were not there yet then.
type fill struct {
	load load.Load
	// shadow is the sum of the estimates.
	shadow, capacity amounts
}

// utilization is how much of the cores and of the memory is used; 0 to 1.
func (f *fill) utilization() (cpu, memory float64) {
	return part(f.load.CPU.Percent, f.shadow.cpu, f.capacity.cpu), part(f.load.Memory.Percent, f.shadow.memory, f.capacity.memory)
}

// part is how much of a capacity is used, 0 to 1; 0 when there is none.
func part(percent, shadow, capacity float64) float64 {
	if capacity <= 0 {
		return 0
	}
	return min(1, max(0, (percent/100*capacity+shadow)/capacity))
}

// mean is the mean of two numbers by the weights.
func mean(args *config.UsageArgs, cpu, memory float64) float64 {
	return (cpu*float64(args.CPUWeight) + memory*float64(args.MemoryWeight)) / float64(args.CPUWeight+args.MemoryWeight)
}

// estimate is what a pod is taken to use of a resource with a request and a limit; at most its limit. Source: Volcano
// pkg/scheduler/plugins/usage, EstimatePodResource.
func estimate(request, limit, risk float64, by *config.UsageEstimator) float64 {
	if limit < request || limit <= 0 {
		limit = request
	}
	return min(limit, max(0, (request*by.RequestRatio+(limit-request)*by.BurstRatio)*risk))
}

// risk is what estimates are multiplied by on a node with a load of 0 to 1.
func risk(load float64, by *config.UsageEstimator) float64 {
	if load >= by.RiskThreshold {
		return by.RiskFactor
	}
	return 1
}

// fillOf adds up how full a node is. Each pod is estimated at the load that the ones before it leave, so that their order
// matters: they come by the time of their start, then of their creation, those that have not started last.
func fillOf(info fwk.NodeInfo, load load.Load, args *config.UsageArgs, now time.Time) fill {
	capacity := info.Node().Status.Capacity
	f := fill{load: load, capacity: amounts{
		cpu: float64(capacity.Cpu().MilliValue()), memory: float64(capacity.Memory().Value()),
	}}
	var pods []*corev1.Pod
	for _, p := range info.GetPods() {
		if unmeasured(p.GetPod(), now, args.Metrics.Interval.Duration) {
			pods = append(pods, p.GetPod())
		}
	}
	slices.SortStableFunc(pods, node.Earlier)
	for _, pod := range pods {
		cpu, memory := f.utilization()
		e := estimateOf(pod, risk(mean(args, cpu, memory), &args.Estimator), &args.Estimator)
		f.shadow.cpu += e.cpu
		f.shadow.memory += e.memory
	}
	return f
}

// unmeasured reports whether a pod on a node uses what the metrics do not show yet: it does not run, or has not for long.
func unmeasured(pod *corev1.Pod, now time.Time, interval time.Duration) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	started := pod.Status.StartTime
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return false
	case corev1.PodRunning:
		return started == nil || now.Sub(started.Time) < interval
	case corev1.PodPending, corev1.PodUnknown:
	}
	// Images may be pulled for longer than that: what the pod will use is still to come.
	return true
}

// estimateOf is what a pod is taken to use.
func estimateOf(pod *corev1.Pod, risk float64, by *config.UsageEstimator) amounts {
	requests := resource.OfPod(pod)
	if len(requests) == 1 { // The pod itself.
		return amounts{
			cpu:    float64(by.BestEffort.Cpu().MilliValue()) * risk,
			memory: float64(by.BestEffort.Memory().Value()) * risk,
		}
	}
	limits := podresource.PodLimits(pod, podresource.PodResourcesOptions{})
	return amounts{
		cpu:    estimate(float64(requests.Get(corev1.ResourceCPU)), float64(limits.Cpu().MilliValue()), risk, by),
		memory: estimate(float64(requests.Get(corev1.ResourceMemory)), float64(limits.Memory().Value()), risk, by),
	}
}
