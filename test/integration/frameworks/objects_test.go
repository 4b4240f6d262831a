// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks_test

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// What the frameworks write, by the code of their controllers in the versions that are named. Owners are left out: their controllers do not run.

// order is when a framework creates the PodGroup of a gang. The zero order is before any pod, without waiting for anything.
type order int

const (
	// groupInqueue: before any pod, and pods follow once the PodGroup is Inqueue.
	groupInqueue order = iota + 1
	// groupLater: after the first pod, which is the PodGroup's owner.
	groupLater
)

// gang is the objects that a framework creates for one job.
type gang struct {
	// by is the framework.
	by    string
	order order
	// volcano or plugins is the PodGroup. Both are nil if the framework creates none.
	volcano *volcano.PodGroup
	plugins *coscheduling.PodGroup
	// pods in the order in which they are created. Alone: so many of them start before the last is there.
	pods  []*corev1.Pod
	alone int
	queue string
}

// marks are the labels and annotations of a pod.
type marks map[string]string

func (m marks) and(more marks) marks {
	all := maps.Clone(m)
	maps.Copy(all, more)
	return all
}

// pod is a pod of one core for the scheduler volcano.
func pod(name string, labels, annotations marks) *corev1.Pod {
	p := env.Pod(name, "1")
	p.Labels, p.Annotations = labels, annotations
	return p
}

func cores(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
}

func volcanoGroup(name, queue string, least int32) *volcano.PodGroup {
	total := cores(int64(least))
	return &volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: env.Namespace},
		Spec:       volcano.PodGroupSpec{MinMember: least, Queue: queue, MinResources: &total},
	}
}

func pluginsGroup(name string, least int32) *coscheduling.PodGroup {
	return &coscheduling.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: env.Namespace},
		Spec:       coscheduling.PodGroupSpec{MinMember: least, MinResources: cores(int64(least))},
	}
}

// trainJob are the pods of a TrainJob of Kubeflow Trainer 2, which it has a JobSet make: two nodes. The user names the scheduler and the queue.
func trainJob(name string, labels, annotations marks) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range 2 {
		pods = append(pods, pod(fmt.Sprintf("%s-node-0-%d", name, i), marks{
			"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/replicatedjob-name": "node", "jobset.sigs.k8s.io/job-index": "0",
			"batch.kubernetes.io/job-name": name + "-node-0", "batch.kubernetes.io/job-completion-index": fmt.Sprint(i),
			"trainer.kubeflow.org/trainjob-ancestor-step": "trainer",
		}.and(labels), annotations))
	}
	return pods
}

// trainer are TrainJobs with the plugin Volcano (v2.1) and with CoScheduling (v2.0).
func trainer() []gang {
	group := volcanoGroup("llm", "research", 2)
	group.Annotations = marks{model.QueueAnnotation: "research"}
	queued := trainJob("bert", marks{coscheduling.PodGroupLabel: "bert"}, marks{model.QueueAnnotation: "research"})
	timed := pluginsGroup("bert", 2)
	timed.Spec.ScheduleTimeoutSeconds = new(int32(60))
	return []gang{
		{
			by: "Kubeflow Trainer, volcano", queue: "research", volcano: group,
			pods: trainJob("llm", nil, marks{model.GroupNameAnnotation: "llm"}),
		},
		{by: "Kubeflow Trainer, coscheduling", queue: "research", plugins: timed, pods: queued},
	}
}

// trainingOperator is a PyTorchJob of training-operator 1.8, with either of the schedulers it knows.
func trainingOperator() []gang {
	pods := func(job string, labels marks, annotations func(role string) marks) []*corev1.Pod {
		var pods []*corev1.Pod
		for i, role := range []string{"master", "worker", "worker"} {
			index := max(0, i-1)
			pods = append(pods, pod(fmt.Sprintf("%s-%s-%d", job, role, index), marks{
				"training.kubeflow.org/job-name": job, "training.kubeflow.org/operator-name": "pytorchjob-controller",
				"training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": fmt.Sprint(index),
			}.and(labels), annotations(role)))
		}
		return pods
	}
	return []gang{
		{
			by: "training-operator, volcano", order: groupInqueue, queue: "research", volcano: volcanoGroup("mnist", "research", 3),
			pods: pods("mnist", nil, func(role string) marks { return marks{model.GroupNameAnnotation: "mnist", model.RoleKey: role} }),
		},
		{
			by: "training-operator, scheduler-plugins", queue: model.DefaultQueue, plugins: pluginsGroup("cifar", 3),
			pods: pods("cifar", marks{coscheduling.PodGroupLabel: "cifar"}, func(string) marks { return nil }),
		},
	}
}

// kubeRay is a RayCluster of KubeRay 1.5: a head and a group of two workers.
func kubeRay() []gang {
	pods := func(cluster string, change func(p *corev1.Pod, group string)) []*corev1.Pod {
		var pods []*corev1.Pod
		for i, group := range []string{"headgroup", "small", "small"} {
			kind := "worker"
			if i == 0 {
				kind = "head"
			}
			p := pod(fmt.Sprintf("%s-%s-%d", cluster, group, i), marks{
				"ray.io/cluster": cluster, "ray.io/group": group, "ray.io/node-type": kind, "ray.io/is-ray-node": "yes",
				"ray.io/identifier": cluster + "-" + kind, "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
			}, marks{"ray.io/ft-enabled": "false"})
			change(p, group)
			pods = append(pods, p)
		}
		return pods
	}
	return []gang{
		{
			by: "KubeRay, volcano", queue: "research", volcano: volcanoGroup("ray-grid-pg", "research", 3),
			pods: pods("grid", func(p *corev1.Pod, group string) {
				p.Labels["volcano.sh/queue-name"] = "research"
				p.Annotations[model.GroupNameAnnotation], p.Annotations[model.RoleKey] = "ray-grid-pg", group
			}),
		},
		{
			by: "KubeRay, scheduler-plugins", queue: model.DefaultQueue, plugins: pluginsGroup("mesh", 3),
			pods: pods("mesh", func(p *corev1.Pod, _ string) {
				p.Labels[coscheduling.PodGroupLabel] = "mesh"
				p.Spec.SchedulerName = otherName
			}),
		},
	}
}

// spark is a SparkApplication of spark-operator 2.2 in cluster mode: the driver starts by itself, and creates the executors.
func spark() []gang {
	pods := func(app string, labels, annotations marks) []*corev1.Pod {
		var pods []*corev1.Pod
		for i, role := range []string{"driver", "executor", "executor"} {
			pods = append(pods, pod(fmt.Sprintf("%s-%s-%d", app, role, i), marks{
				"spark-role": role, "spark-app-name": app, "sparkoperator.k8s.io/app-name": app, "sparkoperator.k8s.io/launched-by-spark-operator": "true",
			}.and(labels), annotations))
		}
		return pods
	}
	all := cores(3)
	named := volcanoGroup("spark-pi-pg", "research", 1)
	named.Spec.MinResources = &all
	other := pluginsGroup("etl-pg", 1)
	other.Spec.MinResources = all
	return []gang{
		{by: "spark-operator, volcano", alone: 2, queue: "research", volcano: named, pods: pods("pi", nil, marks{model.GroupNameAnnotation: "spark-pi-pg"})},
		{
			by: "spark-operator, kube-scheduler", alone: 2, queue: model.DefaultQueue, plugins: other,
			pods: pods("etl", marks{coscheduling.PodGroupLabel: "etl-pg"}, nil),
		},
	}
}

// mpiOperator is an MPIJob of mpi-operator 0.6: a launcher, which is the pod of a Job, and two workers.
func mpiOperator() []gang {
	pods := func(job string, labels, annotations marks) []*corev1.Pod {
		all := marks{"training.kubeflow.org/job-name": job, "training.kubeflow.org/operator-name": "mpi-operator"}.and(labels)
		var pods []*corev1.Pod
		for i := range 2 {
			pods = append(pods, pod(fmt.Sprintf("%s-worker-%d", job, i), all.and(marks{
				"training.kubeflow.org/job-role": "worker", "training.kubeflow.org/replica-index": fmt.Sprint(i),
			}), annotations))
		}
		return append(pods, pod(job+"-launcher-x7k2p", all.and(marks{"training.kubeflow.org/job-role": "launcher"}), annotations))
	}
	timed := pluginsGroup("nbody", 3)
	timed.Spec.ScheduleTimeoutSeconds = new(int32(0))
	return []gang{
		{
			by: "mpi-operator, volcano", queue: "research", volcano: volcanoGroup("osu", "research", 3),
			pods: pods("osu", nil, marks{model.GroupNameAnnotation: "osu"}),
		},
		{
			by: "mpi-operator, scheduler-plugins", queue: model.DefaultQueue, plugins: timed,
			pods: pods("nbody", marks{coscheduling.PodGroupLabel: "nbody"}, nil),
		},
	}
}

// leaderWorkerSet is one replica of LeaderWorkerSet 0.7, of a leader and two workers: the leader owns the PodGroup.
func leaderWorkerSet() []gang {
	const group = "vllm-0-6f7b9d"
	labels := func(index int) marks {
		return marks{
			"leaderworkerset.sigs.k8s.io/name": "vllm", "leaderworkerset.sigs.k8s.io/group-index": "0",
			"leaderworkerset.sigs.k8s.io/worker-index": fmt.Sprint(index), "leaderworkerset.sigs.k8s.io/template-revision-hash": "6f7b9d",
		}
	}
	annotations := marks{model.GroupNameAnnotation: group, "leaderworkerset.sigs.k8s.io/size": "3"}
	g := gang{by: "LeaderWorkerSet", order: groupLater, queue: "research", volcano: volcanoGroup(group, "research", 3)}
	g.volcano.Labels = labels(0)
	for i, name := range []string{"vllm-0", "vllm-0-1", "vllm-0-2"} {
		g.pods = append(g.pods, pod(name, labels(i), annotations))
	}
	return []gang{g}
}

// argo are two steps of a Workflow: each is a pod by itself, in the queue that the Workflow's podMetadata names.
func argo() []gang {
	g := gang{by: "Argo Workflows", alone: 1, queue: "research"}
	for _, step := range []string{"prepare", "train"} {
		g.pods = append(g.pods, pod("steps-"+step, marks{"workflows.argoproj.io/workflow": "steps", "workflows.argoproj.io/completed": "false"},
			marks{"workflows.argoproj.io/node-name": "steps." + step, model.QueueAnnotation: "research"}))
	}
	return []gang{g}
}
