// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

const (
	namespace = "default"
	// jobLabel carries a pod's job, for selectors.
	jobLabel = "soak.caldera.dev/job"
	// runFor and terminateAfter are annotations by which the simulated kubelets end pods.
	runFor         = "localcluster.caldera.dev/run-for"
	terminateAfter = "localcluster.caldera.dev/terminate-after"
	graceSeconds   = 10
)

// classes are the priority classes of jobs, the common one more than once.
var classes = []string{"soak-low", "soak-low", "soak-middle", "soak-middle", "soak-middle", "soak-high"}

func priorityClasses() []*schedulingv1.PriorityClass {
	var list []*schedulingv1.PriorityClass
	for name, value := range map[string]int32{"soak-low": 0, "soak-middle": 100, "soak-high": 1000} {
		list = append(list, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value})
	}
	return list
}

// job is what arrives in a queue.
type job struct {
	name, queue, class string
	least, size        int
	cores, gi          int64
	// work is how long it has to run with at least its minimum.
	work time.Duration
	// finite: each pod succeeds after the work's time. Otherwise the job is deleted when its work is done.
	finite bool
	// budget allows one pod at a time to be evicted.
	budget bool
}

// pace is by what times jobs come and go.
type pace struct {
	// period is that of the waves in which jobs arrive. All other times are parts of it.
	period time.Duration
}

// paceOf lets a run have five waves, of at most six minutes. With those, jobs work for half a minute to two minutes,
// pods take up to four seconds to end, and five to be created again.
func paceOf(duration time.Duration) pace {
	return pace{period: min(6*time.Minute, max(30*time.Second, duration/5))}
}

// draw makes up a job for a queue on a cluster of so many cores.
func (p pace) draw(r *rand.Rand, name, queue string, cores int) job {
	j := job{name: name, queue: queue, class: classes[r.IntN(len(classes))], cores: 1 << r.IntN(3)}
	j.gi = j.cores << (1 + r.IntN(2))
	most := max(4, cores/20/int(j.cores))
	j.size = 2 + r.IntN(15)
	if r.IntN(10) == 0 {
		j.size *= 2
	}
	j.size = min(j.size, most)
	switch {
	case r.IntN(5) < 3:
		j.least = j.size
	case r.IntN(2) == 0:
		j.least = (j.size + 1) / 2
	default:
		j.least = 1
	}
	j.work = between(r, p.period/12, p.period/3)
	j.finite = r.IntN(3) == 0
	j.budget = r.IntN(8) == 0
	return j
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

// wanted is what part of its share a queue's jobs ask for at a time: from a fifth to more than twice as much, each queue
// in a phase of its own, so that some borrow what others leave until those come and take it back.
func (p pace) wanted(queue, queues int, since time.Duration) float64 {
	phase := float64(queue)/float64(queues) + float64(since)/float64(p.period)
	return 0.2 + 2.4*(1+math.Sin(2*math.Pi*phase))/2
}

// asks is what all of its pods ask for, in cores.
func (j job) asks() int { return j.size * int(j.cores) }

func (j job) group() *volcano.PodGroup {
	return &volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: j.name, Namespace: namespace},
		Spec:       volcano.PodGroupSpec{MinMember: int32(j.least), Queue: j.queue, PriorityClassName: j.class},
	}
}

func (j job) disruptionBudget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: j.name, Namespace: namespace},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(int32(max(0, j.size-1)))),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{jobLabel: j.name}},
		},
	}
}

// pod is the job's pod number i, which takes so long to end.
func (j job) pod(i int, ends time.Duration) *corev1.Pod {
	annotations := map[string]string{model.GroupNameAnnotation: j.name, terminateAfter: ends.Round(time.Millisecond).String()}
	if j.finite {
		annotations[runFor] = j.work.Round(time.Second).String()
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", j.name, i), Namespace: namespace,
			Labels: map[string]string{jobLabel: j.name}, Annotations: annotations,
		},
		Spec: corev1.PodSpec{
			SchedulerName: "volcano", PriorityClassName: j.class, RestartPolicy: corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64(graceSeconds)),
			Containers: []corev1.Container{{
				Name: "work", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    *resource.NewQuantity(j.cores, resource.DecimalSI),
					corev1.ResourceMemory: *resource.NewQuantity(j.gi<<30, resource.BinarySI),
				}},
			}},
		},
	}
}

// queueSpecs are the queues. The first five differ: one is guaranteed a part, one is capped, one may not be reclaimed from.
func queueSpecs(n, nodes int) []*volcano.Queue {
	part := func(of float64) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(int64(of*float64(nodes*nodeCores)), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(int64(of*float64(nodes*nodeGi))<<30, resource.BinarySI),
		}
	}
	names := []string{"research", "guaranteed", "capped", "kept", "data"}
	weights := []int32{4, 2, 3, 1, 2}
	list := make([]*volcano.Queue, n)
	all := int32(0)
	for i := range list {
		q := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", i)}, Spec: volcano.QueueSpec{Weight: int32(1 + i%4)}}
		if i < len(names) {
			q.Name, q.Spec.Weight = names[i], weights[i]
		}
		switch q.Name {
		case "guaranteed":
			q.Spec.Guarantee.Resource = part(0.1)
		case "capped":
			q.Spec.Capability = part(0.3)
		case "kept":
			q.Spec.Reclaimable = new(false)
		}
		list[i] = q
		all += q.Spec.Weight
	}
	for _, q := range list {
		q.Spec.Deserved = part(float64(q.Spec.Weight) / float64(all))
	}
	return list
}
