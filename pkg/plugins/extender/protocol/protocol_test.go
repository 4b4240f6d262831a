// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/protocol"
	amounts "github.com/caldera-scheduler/caldera/pkg/resource"
)

// created is when everything was created.
var created = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// cluster is a gang of two, one of which is on a node, in a queue.
type cluster struct {
	state *model.State
	node  *corev1.Node
}

func newCluster() *cluster {
	c := &cluster{state: model.NewState(), node: st.MakeNode().Name("n").Capacity(map[corev1.ResourceName]string{"cpu": "4", "memory": "1Ki", "x.com/gpu": "2", "pods": "10"}).Obj()}
	c.state.AddScheduler("volcano")
	c.state.UpsertNode(c.node)
	c.state.UpsertQueue(&model.Queue{Name: "q", Weight: 2, Object: &volcano.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: "q", Annotations: map[string]string{volcano.KubeHierarchyAnnotationKey: "root/q", volcano.KubeHierarchyWeightAnnotationKey: "1/2"}},
		Spec:       volcano.QueueSpec{Weight: 2},
	}})
	c.state.UpsertGroup(model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "job"}, &model.Group{
		UID: "g", Queue: "q", MinMember: 2, MinTaskMember: map[string]int{"worker": 1}, WaitingTime: time.Minute, Created: created.Time,
		Object: &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns"}, Spec: volcano.PodGroupSpec{MinMember: 2, Queue: "q"}},
	})
	pod := func(name string) *st.PodWrapper {
		return st.MakePod().Name(name).UID(name).Namespace("ns").SchedulerName("volcano").CreationTimestamp(created).
			Annotation(model.GroupNameAnnotation, "job").Annotation(model.RoleKey, "worker").
			Req(map[corev1.ResourceName]string{"cpu": "500m", "memory": "1Ki", "x.com/gpu": "1"})
	}
	c.state.UpsertPod(pod("waits").Obj())
	c.state.UpsertPod(pod("runs").Node("n").Phase(corev1.PodRunning).Obj())
	return c
}

// questions are what an extender is asked about the cluster, by the verb.
func (c *cluster) questions() map[string]any {
	waits, runs := c.state.Task("waits"), c.state.Task("runs")
	job, queue := protocol.JobOf(c.state.Job(waits.Job)), protocol.QueueOf(c.state.Queue("q"))
	node := protocol.NodeOf(c.node, []*model.Task{runs})
	task := protocol.TaskOf(waits)
	return map[string]any{
		"predicate":      protocol.Fits{Task: task, Node: node},
		"prioritize":     protocol.Rank{Task: task, Nodes: []*protocol.Node{node}},
		"preemptable":    protocol.Choose{Evictor: task, Evictees: []*protocol.Task{protocol.TaskOf(runs)}},
		"jobEnqueueable": protocol.OfJob{Job: job},
		"queueOverused":  protocol.OfQueue{Queue: queue},
		"allocateFunc":   protocol.OfTask{Task: task},
		"onSessionOpen": protocol.Session{
			Jobs: map[string]*protocol.Job{job.UID: job}, Nodes: map[string]*protocol.Node{node.Name: node}, Queues: map[string]*protocol.Queue{queue.UID: queue},
		},
		"onSessionClose": protocol.End{},
	}
}

// TestQuestions writes the questions, without the objects of Kubernetes in them, whose JSON is not ours.
func TestQuestions(t *testing.T) {
	golden.Walk(t, "questions", map[string]func(*golden.Case) string{"ask": func(c *golden.Case) string {
		question, ok := newCluster().questions()[c.Options.Text("verb", "")]
		if !ok {
			c.Fatalf("no such verb")
		}
		data, err := json.Marshal(question)
		if err != nil {
			c.Fatalf("%v", err)
		}
		var parsed any
		if err := json.Unmarshal(data, &parsed); err != nil {
			c.Fatalf("%v", err)
		}
		text, err := json.MarshalIndent(shorten(parsed), "", "  ")
		if err != nil {
			c.Fatalf("%v", err)
		}
		return string(text) + "\n"
	}})
}

// shorten leaves only the names of Kubernetes objects, and of what is told elsewhere in full.
func shorten(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if meta, ok := v["metadata"].(map[string]any); ok {
			return "object " + meta["name"].(string)
		}
		for key, value := range v {
			v[key] = shorten(value)
		}
	case []any:
		for i := range v {
			v[i] = shorten(v[i])
		}
	}
	return v
}

func TestWhichPodsAnExtenderIsAskedAbout(t *testing.T) {
	gpu := []string{"nvidia.com/gpu"}
	with := func(init, limits bool, name corev1.ResourceName) *corev1.Pod {
		list := corev1.ResourceList{name: resource.MustParse("1")}
		container := corev1.Container{Resources: corev1.ResourceRequirements{Requests: list}}
		if limits {
			container.Resources = corev1.ResourceRequirements{Limits: list}
		}
		if init {
			return &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{container}, Containers: []corev1.Container{{}}}}
		}
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{}, container}}}
	}
	for name, tc := range map[string]struct {
		managed []string
		pod     *corev1.Pod
		want    bool
	}{
		"an extender that manages nothing is asked about all": {nil, &corev1.Pod{}, true},
		"a limit of an init container counts":                 {gpu, with(true, true, "nvidia.com/gpu"), true},
		"a request of a second container counts":              {gpu, with(false, false, "nvidia.com/gpu"), true},
		"other resources do not":                              {gpu, with(false, false, "cpu"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := protocol.Concerns(tc.managed, tc.pod); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestWhatIsWrittenOfDevices: those of a claim that pods share, and not who shares it.
func TestWhatIsWrittenOfDevices(t *testing.T) {
	held := amounts.Vector{{Name: "deviceclass/gpu", Value: 4}}.Shared("ns/claim")
	held.Add(held)
	if got := protocol.ResourceOf(held).ScalarResources; len(got) != 1 || got["deviceclass/gpu"] != 4000 {
		t.Errorf("two pods with a claim of four devices hold %v", got)
	}
}
