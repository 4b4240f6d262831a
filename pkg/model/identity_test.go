// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

func TestJobByMarks(t *testing.T) {
	type options = []func(*corev1.Pod)
	for name, tc := range map[string]struct {
		pod  options
		want model.JobKey
	}{
		"kube-batch's annotation": {
			options{annotated("scheduling.k8s.io/group-name", "a")}, model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "a"},
		},
		"Volcano's own annotation": {
			options{annotated("scheduling.volcano.sh/group-name", "a")}, model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "a"},
		},
		"of both annotations kube-batch's": {
			options{annotated("scheduling.volcano.sh/group-name", "b"), annotated("scheduling.k8s.io/group-name", "a")},
			model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "a"},
		},
		"scheduler-plugins' label names another kind of group": {
			options{labelled("scheduling.x-k8s.io/pod-group", "a")}, model.JobKey{Source: model.FromCoscheduling, Namespace: "ns", Name: "a"},
		},
		"an annotation goes before the label": {
			options{labelled("scheduling.x-k8s.io/pod-group", "b"), annotated("scheduling.volcano.sh/group-name", "a")},
			model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "a"},
		},
		"an empty annotation names nothing": {
			options{annotated("scheduling.k8s.io/group-name", "")}, model.JobKey{Source: model.FromPod, Namespace: "ns", Name: "me"},
		},
		"a label spelled like the annotation names nothing": {
			options{labelled("scheduling.k8s.io/group-name", "a")}, model.JobKey{Source: model.FromPod, Namespace: "ns", Name: "me"},
		},
		"Kubernetes' own group": {options{inNative("a")}, model.JobKey{Source: model.FromNative, Namespace: "ns", Name: "a"}},
		"Kubernetes' own group goes before an annotation": {
			options{inNative("a"), annotated("scheduling.k8s.io/group-name", "b")}, model.JobKey{Source: model.FromNative, Namespace: "ns", Name: "a"},
		},
		"Kubernetes' own group goes before a label": {
			options{inNative("a"), labelled("scheduling.x-k8s.io/pod-group", "b")}, model.JobKey{Source: model.FromNative, Namespace: "ns", Name: "a"},
		},
		"what Volcano makes for a pod without a group": {
			options{annotated("scheduling.k8s.io/group-name", "podgroup-me")}, model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "podgroup-me"},
		},
		"a label goes before what Volcano made": {
			options{annotated("scheduling.k8s.io/group-name", "podgroup-me"), labelled("scheduling.x-k8s.io/pod-group", "a")},
			model.JobKey{Source: model.FromCoscheduling, Namespace: "ns", Name: "a"},
		},
		"a label goes before what Volcano made for the owner": {
			options{ownedBy("set"), annotated("scheduling.k8s.io/group-name", "podgroup-set"), labelled("scheduling.x-k8s.io/pod-group", "a")},
			model.JobKey{Source: model.FromCoscheduling, Namespace: "ns", Name: "a"},
		},
		"Kubernetes' own group goes before what Volcano made": {
			options{inNative("a"), annotated("scheduling.k8s.io/group-name", "podgroup-me")}, model.JobKey{Source: model.FromNative, Namespace: "ns", Name: "a"},
		},
		"a name that only begins like what Volcano makes": {
			options{annotated("scheduling.k8s.io/group-name", "podgroup-other"), labelled("scheduling.x-k8s.io/pod-group", "a")},
			model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "podgroup-other"},
		},
		"without a group the pod is a job of its own": {
			nil, model.JobKey{Source: model.FromPod, Namespace: "ns", Name: "me"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(tc.want, model.JobByMarks(newPod("me", tc.pod...))); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func inNative(group string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group} }
}

func ownedBy(uid types.UID) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{UID: uid}} }
}

// TestQueueOf: the queue is the first that somebody names, of the PodGroup, the oldest pod and the namespace.
func TestQueueOf(t *testing.T) {
	key := model.JobKey{Source: model.FromCoscheduling, Namespace: "ns", Name: "a"}
	member := func(i int, queue string) *corev1.Pod {
		p := newPod(podName(i), labelled(model.CoschedulingLabel, "a"))
		p.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(i) * time.Second))
		if queue != "" {
			p.Annotations[model.QueueAnnotation] = queue
		}
		return p
	}
	for name, tc := range map[string]struct {
		// group is the queue that the PodGroup names, pods those of its pods, the oldest first.
		group     string
		pods      []string
		namespace string
		want      string
	}{
		"nobody names one":                       {pods: []string{""}, want: "default"},
		"nobody names one, and no pods":          {want: "default"},
		"the group":                              {group: "g", pods: []string{""}, want: "g"},
		"the group goes before a pod":            {group: "g", pods: []string{"p"}, want: "g"},
		"the group goes before the namespace":    {group: "g", namespace: "n", want: "g"},
		"the group goes before both":             {group: "g", pods: []string{"p"}, namespace: "n", want: "g"},
		"a pod":                                  {pods: []string{"p"}, want: "p"},
		"a pod goes before the namespace":        {pods: []string{"p"}, namespace: "n", want: "p"},
		"the oldest pod":                         {pods: []string{"p", "q"}, want: "p"},
		"the oldest pod names none":              {pods: []string{"", "q"}, want: "default"},
		"the namespace goes before younger pods": {pods: []string{"", "q"}, namespace: "n", want: "n"},
		"the namespace":                          {pods: []string{""}, namespace: "n", want: "n"},
		"the namespace of a group without pods":  {namespace: "n", want: "n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := model.NewState()
			s.AddScheduler(batch)
			s.UpsertNamespace("ns", tc.namespace)
			s.UpsertNamespace("other", "wrong")
			s.UpsertGroup(key, &model.Group{UID: "g", Queue: tc.group, MinMember: 1})
			// The youngest comes first, so that what was the oldest is not any more.
			for i, queue := range slices.Backward(tc.pods) {
				s.UpsertPod(member(i, queue))
			}
			if got := s.Summary(key).Queue; got != tc.want {
				t.Errorf("the queue is %q, want %q", got, tc.want)
			}
			s.UpsertPod(member(podCount, "late"))
			s.DeletePod(types.UID(podName(0)))
			if len(tc.pods) > 0 && tc.group == "" {
				next := append(slices.Clone(tc.pods[1:]), "late")[0]
				want := cmp.Or(next, tc.namespace, "default")
				if got := s.Summary(key).Queue; got != want {
					t.Errorf("without its oldest pod the queue is %q, want %q", got, want)
				}
			}
		})
	}
}

// TestTheGangOfAnOwner: pods belong to the gang of their controller if it makes one and they name no other group. One that takes the name of
// another has a gang of its own.
func TestTheGangOfAnOwner(t *testing.T) {
	alone := func(name string) model.JobKey {
		return model.JobKey{Source: model.FromPod, Namespace: "ns", Name: name}
	}
	const first, second = "11111111-aaaa", "22222222-aaaa"
	by := func(uid types.UID) func(*corev1.Pod) {
		return func(p *corev1.Pod) { owned(p); p.OwnerReferences[0].UID = uid }
	}
	gang := model.OwnerKey("ReplicaSet", "ns", "set", first)
	if want := "ns/replicaset/set-11111111"; gang.String() != want {
		t.Errorf("the gang is called %s, want %s", gang, want)
	}
	for name, tc := range map[string]struct {
		pod  []func(*corev1.Pod)
		want model.JobKey
	}{
		"its pod":                           {[]func(*corev1.Pod){by(first)}, gang},
		"a pod of another one's":            {[]func(*corev1.Pod){by(second)}, alone("me")},
		"a pod without an owner":            {nil, alone("me")},
		"a pod that names a group":          {[]func(*corev1.Pod){by(first), in("train")}, train},
		"a pod whose owner controls it not": {[]func(*corev1.Pod){by(first), func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }}, alone("me")},
	} {
		t.Run(name, func(t *testing.T) {
			s := model.NewState()
			s.AddScheduler(batch)
			s.UpsertGroup(gang, &model.Group{UID: first, ByOwner: true, MinMember: 2})
			pod := newPod("me", tc.pod...)
			s.UpsertPod(pod)
			if got, inSnapshot := s.JobOf(pod), s.Snapshot().JobOf(pod); got != tc.want || inSnapshot == nil || inSnapshot.Key != tc.want {
				t.Errorf("it belongs to %s, in a snapshot to %v, want %s", got, inSnapshot, tc.want)
			}
			if task := s.Task(pod.UID); task.Job != tc.want {
				t.Errorf("its task is one of %s, want %s", task.Job, tc.want)
			}
		})
	}
}

// TestPodsOfAnOwnerThatIsGone: what is left of a gang does not start in part while its pods are being deleted.
func TestPodsOfAnOwnerThatIsGone(t *testing.T) {
	s := model.NewState()
	s.AddScheduler(batch)
	s.UpsertGroup(owners, &model.Group{UID: "set-uid", ByOwner: true, MinMember: 2})
	s.UpsertPod(newPod("a", owned))
	s.DeleteGroup(owners)
	s.UpsertPod(newPod("a", owned, labelled("changed", "yes")))
	s.UpsertPod(newPod("b", owned))
	job := s.Job(owners)
	if job == nil || len(job.Tasks) != 2 {
		t.Fatalf("the gang is %+v, want both pods in it", job)
	}
	if r := job.Blocked(); r.Kind != model.PodGroupNotFound || !strings.Contains(r.Message, "ns/replicaset/set-set-uid does not exist any more") {
		t.Errorf("it waits because of %+v", r)
	}
	// Who is orphaned has no owner any more.
	s.UpsertPod(newPod("b"))
	if key := s.Task("b").Job; key.Source != model.FromPod {
		t.Errorf("an orphan belongs to %s", key)
	}
}

// The table of reference section 2.3, and what its words leave open.
func TestStatusOfAPod(t *testing.T) {
	type options = []func(*corev1.Pod)
	for name, tc := range map[string]struct {
		pod  options
		want model.Status
	}{
		"running":                                  {options{running}, model.Running},
		"running and deleted":                      {options{running, terminating}, model.Releasing},
		"pending without a node":                   {nil, model.Pending},
		"pending on a node":                        {options{on("node-0")}, model.Bound},
		"pending and deleted, without a node":      {options{terminating}, model.Releasing},
		"pending and deleted, on a node":           {options{on("node-0"), terminating}, model.Releasing},
		"succeeded":                                {options{succeeded}, model.Succeeded},
		"succeeded and deleted":                    {options{succeeded, terminating}, model.Succeeded},
		"failed":                                   {options{failed}, model.Failed},
		"failed before it had a node":              {options{phase(corev1.PodFailed)}, model.Failed},
		"unknown":                                  {options{on("node-0"), phase(corev1.PodUnknown)}, model.Unknown},
		"of no phase yet, without a node":          {options{phase("")}, model.Pending},
		"of no phase yet, on a node":               {options{on("node-0"), phase("")}, model.Bound},
		"gated is pending, and not to be placed":   {options{gated}, model.Pending},
		"of no phase yet, deleted, without a node": {options{phase(""), terminating}, model.Releasing},
	} {
		t.Run(name, func(t *testing.T) {
			if got := model.NewTask(newPod("p", tc.pod...)).Status; got != tc.want {
				t.Errorf("status is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestTaskReadsItsPod(t *testing.T) {
	// facts is what a task says beside its status and class.
	type facts struct {
		Role              string
		Priority          int32
		Request           string
		Traits            model.Traits
		Gated, BestEffort bool
		Problem           string
	}
	type options = []func(*corev1.Pod)
	priority := func(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = new(n) } }
	for name, tc := range map[string]struct {
		pod  options
		want facts
	}{
		"a plain pod has no role and Volcano's priority 1": {
			nil, facts{Priority: 1, Request: "cpu=1 pods=1"},
		},
		"the role is in the annotation": {
			options{annotated("volcano.sh/task-spec", "ps")}, facts{Role: "ps", Priority: 1, Request: "cpu=1 pods=1"},
		},
		"or in the label": {
			options{labelled("volcano.sh/task-spec", "ps")}, facts{Role: "ps", Priority: 1, Request: "cpu=1 pods=1"},
		},
		"the annotation goes before the label": {
			options{labelled("volcano.sh/task-spec", "worker"), annotated("volcano.sh/task-spec", "ps")},
			facts{Role: "ps", Priority: 1, Request: "cpu=1 pods=1"},
		},
		"the pod's priority": {
			options{priority(7)}, facts{Priority: 7, Request: "cpu=1 pods=1"},
		},
		"the pod's priority may be 0": {
			options{priority(0)}, facts{Priority: 0, Request: "cpu=1 pods=1"},
		},
		"a priority within the job goes before the pod's": {
			options{priority(7), annotated("volcano.sh/task-priority", "-3")}, facts{Priority: -3, Request: "cpu=1 pods=1"},
		},
		"one that is no number is complained of, and not used": {
			options{priority(7), annotated("volcano.sh/task-priority", "high")}, facts{
				Priority: 7, Request: "cpu=1 pods=1",
				Problem: `annotation volcano.sh/task-priority is "high": write a whole number of 32 bits; priority 7 is used until then`,
			},
		},
		"so is one that does not fit 32 bits": {
			options{annotated("volcano.sh/task-priority", "4294967296")}, facts{
				Priority: 1, Request: "cpu=1 pods=1",
				Problem: `annotation volcano.sh/task-priority is "4294967296": write a whole number of 32 bits; priority 1 is used until then`,
			},
		},
		"and an empty one": {
			options{annotated("volcano.sh/task-priority", "")}, facts{
				Priority: 1, Request: "cpu=1 pods=1",
				Problem: `annotation volcano.sh/task-priority is "": write a whole number of 32 bits; priority 1 is used until then`,
			},
		},
		"scheduling gates": {
			options{gated}, facts{Priority: 1, Request: "cpu=1 pods=1", Gated: true},
		},
		"a pod slot alone is best effort": {
			options{bestEffort}, facts{Priority: 1, Request: "pods=1", BestEffort: true},
		},
		"a request of zero is best effort": {
			options{asking("cpu", "0")}, facts{Priority: 1, Request: "pods=1", BestEffort: true},
		},
		"a claim is a volume to choose": {
			options{claiming("data")}, facts{Priority: 1, Request: "cpu=1 pods=1", Traits: model.HasVolumes},
		},
		"so is a volume made for the pod": {
			options{withVolume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}})},
			facts{Priority: 1, Request: "cpu=1 pods=1", Traits: model.HasVolumes},
		},
		"a ConfigMap is not": {
			options{withVolume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}})},
			facts{Priority: 1, Request: "cpu=1 pods=1"},
		},
		"resource claims": {
			options{func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }},
			facts{Priority: 1, Request: "cpu=1 pods=1", Traits: model.HasClaims},
		},
		"anti-affinity looks at other pods": {
			options{func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}} }},
			facts{Priority: 1, Request: "cpu=1 pods=1", Traits: model.HasPodTerms},
		},
		"so do affinity to pods and topology spread": {
			options{func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1}}
			}},
			facts{Priority: 1, Request: "cpu=1 pods=1", Traits: model.HasPodTerms},
		},
		"affinity to nodes does not": {
			options{func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}} }},
			facts{Priority: 1, Request: "cpu=1 pods=1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			task := model.NewTask(newPod("p", tc.pod...))
			got := facts{
				Role: task.Role, Priority: task.Priority, Request: task.Request.String(), Traits: task.Traits,
				Gated: task.Gated, BestEffort: task.BestEffort, Problem: task.Problem,
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func withVolume(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
	}
}

func claiming(claim string) func(*corev1.Pod) {
	return withVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}})
}
