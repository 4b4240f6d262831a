// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	coschedulingfake "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned/fake"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanofake "volcano.sh/apis/pkg/client/clientset/versioned/fake"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// fixture is a writer on a cluster whose objects come back through the informers, so that what it has written is not to be
// written again. Tests run in a synctest bubble, where time passes only while everything waits.
type fixture struct {
	t *testing.T
	*status.Writer
	state  *model.State
	kube   *fake.Clientset
	groups *volcanofake.Clientset
	// labelled are PodGroups of scheduler-plugins.
	labelled *coschedulingfake.Clientset
	// reports counts those of Waits.
	reports uint64
}

// Waits reports why a job waits after all that was reported before.
func (d *fixture) Waits(key model.JobKey, reason model.Reason) {
	d.reports++
	d.Writer.Waits(key, reason, d.reports)
}

// everythingIsServed says so of every group version.
type everythingIsServed struct {
	discovery.ServerResourcesInterface
}

func (everythingIsServed) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{}, nil
}

// newFixture returns a fixture whose writer does not run yet. The cluster has an open queue "default" beside the objects.
func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	groupObjects := []runtime.Object{queue("root", volcano.QueueStateOpen), queue("default", volcano.QueueStateOpen)}
	var coreObjects, others []runtime.Object
	for _, o := range objects {
		switch o.(type) {
		case *volcano.PodGroup, *volcano.Queue:
			groupObjects = append(groupObjects, o)
		case *coscheduling.PodGroup:
			others = append(others, o)
		default:
			coreObjects = append(coreObjects, o)
		}
	}
	d := &fixture{t: t, state: model.NewState(), kube: fake.NewClientset(coreObjects...), groups: volcanofake.NewSimpleClientset(groupObjects...)}
	d.state.AddScheduler("volcano")
	var err error
	d.Writer, err = status.New(d.groups, d.kube, d.state)
	d.check(err)
	d.labelled = coschedulingfake.NewSimpleClientset(others...)
	d.WriteCoscheduling(d.labelled)
	d.state.Observe(d.Notify)

	factory := informers.NewSharedInformerFactory(d.kube, 0)
	synced, err := informer.Core(d.state, factory)
	d.check(err)
	owners, err := informer.NewOwners(d.state, factory, d.kube, clock.RealClock{}, informer.OwnerPatience)
	d.check(err)
	factory.Start(t.Context().Done())
	d.check(owners.Run(t.Context()))
	if !cache.WaitFor(t.Context(), "", synced...) {
		t.Fatal("the informers are not in sync")
	}
	d.check(informer.Groups(t.Context(), d.state, informer.Clients{
		Discovery: everythingIsServed{}, Volcano: d.groups, Coscheduling: d.labelled, Kube: d.kube,
	}))
	// The PodGroup was let into its queue before.
	d.state.Admit(train, true)
	// What is scheduled by now makes one write.
	time.Sleep(time.Second)
	d.forget()
	return d
}

// open returns a fixture whose writer runs.
func open(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	d := newFixture(t, objects...)
	go d.Run(t.Context())
	return d
}

// listFirst makes informers list before they watch: the fake API server of Volcano's kinds does not stream lists.
func listFirst(t *testing.T) {
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false)
}

func (d *fixture) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// forget forgets the requests made so far.
func (d *fixture) forget() {
	d.groups.ClearActions()
	d.kube.ClearActions()
}

// writes are the requests that changed a resource since the last call of forget, as "verb" or "verb/subresource".
func (d *fixture) writes(actions []clienttesting.Action, resource string) []string {
	var writes []string
	for _, a := range actions {
		if a.GetResource().Resource == resource && !slices.Contains([]string{"get", "list", "watch"}, a.GetVerb()) {
			writes = append(writes, strings.TrimSuffix(a.GetVerb()+"/"+a.GetSubresource(), "/"))
		}
	}
	return writes
}

func (d *fixture) podGroupWrites() []string { return d.writes(d.groups.Actions(), "podgroups") }

// podGroup is the PodGroup "train" as the API server has it.
func (d *fixture) podGroup() *volcano.PodGroup {
	d.t.Helper()
	g, err := d.groups.SchedulingV1beta1().PodGroups("ns").Get(d.t.Context(), "train", metav1.GetOptions{})
	d.check(err)
	return g
}

// scheduledConditions are the conditions PodScheduled of all pods that have one, as "reason: message".
func (d *fixture) scheduledConditions() map[string]string {
	d.t.Helper()
	pods, err := d.kube.CoreV1().Pods("ns").List(d.t.Context(), metav1.ListOptions{})
	d.check(err)
	told := map[string]string{}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				told[pods.Items[i].Name] = c.Reason + ": " + c.Message
			}
		}
	}
	return told
}

// events are all events as "type reason on kind name: message", each as often as it was said, sorted.
func (d *fixture) events() []string { return d.eventsIn("ns") }

// eventsIn are those of another namespace.
func (d *fixture) eventsIn(namespace string) []string {
	d.t.Helper()
	list, err := d.kube.CoreV1().Events(namespace).List(d.t.Context(), metav1.ListOptions{})
	d.check(err)
	var said []string
	for _, e := range list.Items {
		for range max(1, e.Count) {
			said = append(said, e.Type+" "+e.Reason+" on "+e.InvolvedObject.Kind+" "+e.InvolvedObject.Name+": "+e.Message)
		}
	}
	slices.Sort(said)
	return said
}

// put creates or replaces a pod.
func (d *fixture) put(p *corev1.Pod) {
	d.t.Helper()
	_, err := d.kube.CoreV1().Pods("ns").Update(d.t.Context(), p, metav1.UpdateOptions{})
	d.check(err)
}

// train is the key of the PodGroup that tests are about.
var train = model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "train"}

func podGroup(least int32, options ...func(*volcano.PodGroup)) *volcano.PodGroup {
	g := &volcano.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.volcano.sh/v1beta1", Kind: "PodGroup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "train-uid"},
		Spec:       volcano.PodGroupSpec{MinMember: least, Queue: "default"},
		Status:     volcano.PodGroupStatus{Phase: volcano.PodGroupPending},
	}
	for _, change := range options {
		change(g)
	}
	return g
}

func queue(name string, state volcano.QueueState) *volcano.Queue {
	return &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: volcano.QueueStatus{State: state}}
}

// member returns a pod of the PodGroup "train".
func member(name string, options ...func(*corev1.Pod)) *corev1.Pod {
	inTrain := func(p *corev1.Pod) { p.Annotations = map[string]string{model.GroupNameAnnotation: "train"} }
	return newPod(name, append([]func(*corev1.Pod){inTrain}, options...)...)
}

func newPod(name string, options ...func(*corev1.Pod)) *corev1.Pod {
	p := builders.Pod("ns", name).UID(name + "-uid").Req(builders.CPU("1")).Phase(corev1.PodPending).Obj()
	p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	for _, change := range options {
		change(p)
	}
	return p
}

func bound(p *corev1.Pod) { p.Spec.NodeName = "node-0" }

func running(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "node-0", corev1.PodRunning }

func gated(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "hold"}} }

// told gives a pod the condition PodScheduled=False.
func told(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
	}
}
