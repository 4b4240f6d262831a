// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"bytes"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	batchv1alpha1 "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	volcanov1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

func TestExamplesSayWhatToExpect(t *testing.T) {
	for _, name := range files(t, "examples") {
		if data := read(t, name); !bytes.HasPrefix(data, []byte("# ")) || !bytes.Contains(data, []byte("\n# Expect: ")) {
			t.Errorf("%s: want a leading comment with a line that starts with Expect:", name)
		}
	}
}

// Each PodGroup of an example has pods enough for its minimum, in the roles it asks for, and every pod that names a PodGroup
// finds it in the same file.
func TestExampleGangsAreComplete(t *testing.T) {
	for _, name := range files(t, "examples") {
		t.Run(name, func(t *testing.T) {
			objects := loadObjects(t, name)
			members := gangMembers(objects)
			for _, pg := range only[*volcanov1beta1.PodGroup](objects) {
				total := int32(0)
				for _, count := range members[pg.Name] {
					total += count
				}
				if total < pg.Spec.MinMember {
					t.Errorf("PodGroup %s: %d pods for a minimum of %d", pg.Name, total, pg.Spec.MinMember)
				}
				for role, least := range pg.Spec.MinTaskMember {
					if members[pg.Name][role] < least {
						t.Errorf("PodGroup %s: %d pods of role %s for a minimum of %d", pg.Name, members[pg.Name][role], role, least)
					}
				}
				delete(members, pg.Name)
			}
			for group := range maps.Keys(members) {
				t.Errorf("pods name PodGroup %s, which the file lacks", group)
			}
		})
	}
}

func TestTwoGangsFitOneAtATime(t *testing.T) {
	const nodes, perNode = 20, 8
	var sizes []int64
	for _, job := range only[*batchv1.Job](loadObjects(t, "examples/two-gangs.yaml")) {
		pod := job.Spec.Template.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]
		if pod.Value() > perNode {
			t.Errorf("job %s: a pod of %d GPUs fits no node", job.Name, pod.Value())
		}
		sizes = append(sizes, pod.Value()*int64(*job.Spec.Parallelism))
	}
	if len(sizes) != 2 || max(sizes[0], sizes[1]) > nodes*perNode || sizes[0]+sizes[1] <= nodes*perNode {
		t.Errorf("gangs of %v GPUs, want two of which one fits into %d GPUs", sizes, nodes*perNode)
	}
}

// gangMembers counts the pods that the workloads create, by PodGroup and role.
func gangMembers(objects []runtime.Object) map[string]map[string]int32 {
	members := map[string]map[string]int32{}
	count := func(template *corev1.PodTemplateSpec, pods *int32) {
		group := template.Annotations[volcanov1beta1.KubeGroupNameAnnotationKey]
		if group == "" {
			return
		}
		if members[group] == nil {
			members[group] = map[string]int32{}
		}
		n := int32(1)
		if pods != nil {
			n = *pods
		}
		members[group][template.Annotations[batchv1alpha1.TaskSpecKey]] += n
	}
	for _, job := range only[*batchv1.Job](objects) {
		count(&job.Spec.Template, job.Spec.Parallelism)
	}
	for _, deployment := range only[*appsv1.Deployment](objects) {
		count(&deployment.Spec.Template, deployment.Spec.Replicas)
	}
	return members
}
