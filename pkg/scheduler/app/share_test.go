// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// decoded is an object as it comes from the API server, which shares nothing with any other.
func decoded[T interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}](t interface{ Fatal(...any) }, from, into T) T {
	raw, err := from.Marshal()
	if err == nil {
		err = into.Unmarshal(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return into
}

var managed = []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)}}}

// member is a pod of a gang as the API server fills it in.
func member(name, node string) *corev1.Pod {
	seconds, grace, links, priority, policy := int64(300), int64(30), true, int32(7), corev1.PreemptLowerPriority
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: "uid", ManagedFields: managed, Labels: map[string]string{"job": "train"}, Annotations: map[string]string{"group": "train"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "job-uid"}},
		},
		Spec: corev1.PodSpec{
			NodeName: node, SchedulerName: "volcano", NodeSelector: map[string]string{"gpu": "yes"}, SecurityContext: &corev1.PodSecurityContext{},
			TerminationGracePeriodSeconds: &grace, EnableServiceLinks: &links, Priority: &priority, PreemptionPolicy: &policy,
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds}},
			Containers: []corev1.Container{{
				Name: "work", Image: "registry.example/train:1", Args: []string{"--fast"}, Env: []corev1.EnvVar{{Name: "MODE", Value: "train"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")}},
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func transformed[T any](t interface{ Fatal(...any) }, s *sharer, o T) T {
	got, err := s.transform(o)
	if err != nil {
		t.Fatal(err)
	}
	return got.(T)
}

func TestPodsShareWhatIsEqual(t *testing.T) {
	s := newSharer()
	a := transformed(t, s, decoded(t, member("a", "node-1"), &corev1.Pod{}))
	b := transformed(t, s, decoded(t, member("b", "node-1"), &corev1.Pod{}))
	same := func(what string, x, y any) {
		if fmt.Sprintf("%p", x) != fmt.Sprintf("%p", y) {
			t.Errorf("%s are kept twice", what)
		}
	}
	same("labels", a.Labels, b.Labels)
	same("annotations", a.Annotations, b.Annotations)
	same("selectors", a.Spec.NodeSelector, b.Spec.NodeSelector)
	same("requests", a.Spec.Containers[0].Resources.Requests, b.Spec.Containers[0].Resources.Requests)
	same("tolerations", a.Spec.Tolerations, b.Spec.Tolerations)
	same("security contexts", a.Spec.SecurityContext, b.Spec.SecurityContext)
	same("priorities", a.Spec.Priority, b.Spec.Priority)
	same("names of nodes", unsafe.StringData(a.Spec.NodeName), unsafe.StringData(b.Spec.NodeName))
	same("owners", unsafe.StringData(string(a.OwnerReferences[0].UID)), unsafe.StringData(string(b.OwnerReferences[0].UID)))
	if a.Name != "a" || b.Name != "b" {
		t.Errorf("the pods are called %s and %s", a.Name, b.Name)
	}
}

// TestObjectsStayWhatTheyAre: whatever came before, an object is the one that the API server has, without its managed fields.
func TestObjectsStayWhatTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSharer()
		for range rapid.IntRange(1, 20).Draw(t, "objects") {
			pod, node := drawPod(t), drawNode(t)
			want, wantNode := pod.DeepCopy(), node.DeepCopy()
			want.ManagedFields, wantNode.ManagedFields = nil, nil
			got := transformed(t, s, decoded(t, pod, &corev1.Pod{}))
			gotNode := transformed(t, s, decoded(t, node, &corev1.Node{}))
			if diff := cmp.Diff(decoded(t, want, &corev1.Pod{}), got); diff != "" {
				t.Fatalf("a pod (-want,+got)\n%s", diff)
			}
			if diff := cmp.Diff(decoded(t, wantNode, &corev1.Node{}), gotNode); diff != "" {
				t.Fatalf("a node (-want,+got)\n%s", diff)
			}
		}
	})
}

func drawPod(t *rapid.T) *corev1.Pod {
	text := rapid.SampledFrom([]string{"", "a", "b"})
	amount := rapid.SampledFrom([]string{"0", "1", "1000m", "1Gi", "1073741824", "5Ei", "0.5"})
	p := member(text.Draw(t, "name"), text.Draw(t, "node"))
	p.Labels = rapid.MapOfN(text, text, 0, 3).Draw(t, "labels")
	p.Annotations = rapid.MapOfN(text, text, 0, 3).Draw(t, "annotations")
	p.Spec.Containers[0].Image = text.Draw(t, "image")
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		"cpu": resource.MustParse(amount.Draw(t, "cpu")), "memory": resource.MustParse(amount.Draw(t, "memory")),
	}
	p.Spec.Tolerations[0].Value = text.Draw(t, "toleration")
	if *p.Spec.Tolerations[0].TolerationSeconds = rapid.Int64Range(0, 2).Draw(t, "seconds"); *p.Spec.Tolerations[0].TolerationSeconds == 0 {
		p.Spec.Tolerations[0].TolerationSeconds = nil
	}
	if *p.Spec.Priority = rapid.Int32Range(0, 2).Draw(t, "priority"); *p.Spec.Priority == 0 {
		p.Spec.Priority = nil
	}
	if rapid.Bool().Draw(t, "secured") {
		p.Spec.SecurityContext.RunAsNonRoot = new(bool)
	}
	return p
}

func drawNode(t *rapid.T) *corev1.Node {
	amount := rapid.SampledFrom([]string{"0", "32", "32000m"})
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", ManagedFields: managed, Labels: map[string]string{"zone": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse(amount.Draw(t, "allocatable"))},
			Capacity:    corev1.ResourceList{"cpu": resource.MustParse(amount.Draw(t, "capacity"))},
			Images:      []corev1.ContainerImage{{Names: []string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "image")}}},
		},
	}
}

// TestATransformedObjectIsLeftAlone: an informer's first list is transformed twice, and others may read it by the second time.
func TestATransformedObjectIsLeftAlone(t *testing.T) {
	s := newSharer()
	pod := transformed(t, s, decoded(t, member("a", "node-1"), &corev1.Pod{}))
	labels := pod.Labels
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			_ = pod.Spec.NodeName
		}
	}()
	transformed(t, newSharer(), pod) // The race detector sees a write.
	<-done
	if fmt.Sprintf("%p", labels) != fmt.Sprintf("%p", pod.Labels) {
		t.Error("the labels are other ones")
	}
}

// BenchmarkTransform measures what sharing costs, and what a pod of a gang of 100 takes of memory with it and without.
func BenchmarkTransform(b *testing.B) {
	raw := make([][]byte, 10_000)
	for i := range raw {
		p := member(fmt.Sprintf("train-%d-%d", i/100, i), fmt.Sprintf("node-%d", i%1000))
		p.Labels["job"] = fmt.Sprintf("train-%d", i/100)
		var err error
		if raw[i], err = p.Marshal(); err != nil {
			b.Fatal(err)
		}
	}
	trim := func(o any) (any, error) {
		o.(*corev1.Pod).ManagedFields = nil
		return o, nil
	}
	for name, transform := range map[string]func(any) (any, error){"trimmed": trim, "shared": newSharer().transform} {
		b.Run(name, func(b *testing.B) {
			pods := make([]*corev1.Pod, len(raw))
			var before, after runtime.MemStats
			for b.Loop() {
				clear(pods)
				runtime.GC()
				runtime.ReadMemStats(&before)
				for i := range raw {
					pods[i] = &corev1.Pod{}
					if err := pods[i].Unmarshal(raw[i]); err != nil {
						b.Fatal(err)
					}
					if _, err := transform(pods[i]); err != nil {
						b.Fatal(err)
					}
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(pods)), "B/pod")
			runtime.KeepAlive(pods)
		})
	}
}
