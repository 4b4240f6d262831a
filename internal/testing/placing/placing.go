// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placing is for tests of plugins that decide on nodes: it runs text tables of nodes and a pod through a real
// profile, made of tiers as a user would write them.
package placing

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	caldera "github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// Walk runs the cases of testdata/<file>.txt, of the commands "place" and "plan":
//
//	plugin NAME [argument=value ...]              a plugin of the tier
//	queue NAME [parent=NAME] [required=GROUP,GROUP] [preferred=...] [anti-required=...] [anti-preferred=...] [affinity=none] [limits=JSON]
//	node NAME has=cpu=2,memory=4Gi [used=cpu=1] [queue=NAME] [labels=a=b;c=d] [annotations=a=b] [taints=key:PreferNoSchedule]
//	numa NAME cpus=0-3/4-7 [free=0-7] [reserved=1] [manager=static] policy=restricted
//	on NAME POD [has=cpu=1] [annotations=a=b;c=d] [labels=a=b] [phase=Running] [age=0]
//	pod [has=cpu=1] [queue=NAME] [annotations=a=b;c=d] [labels=a=b] [prefer=label=value] [need=label=value]
//	container NAME has=cpu=1 [kind=init]
//
// A line "numa" is the Numatopology of a node: each part of cpus is a NUMA node and a socket. A line "on" is a pod on a node,
// which has started if it has an age, in minutes. A line "container" adds a container to the pod before it, of the kind init,
// sidecar or, without one, ordinary; "has" on the pod's own line is a container, too.
//
// What comes out of "place" is a line for each node: its score as the profile weighs it with its parts, or why it is out of the
// question. For "plan" the pod has count=N, and is planned as a gang of so many: what comes out is a line for each node with
// how many it takes, or why the gang does not fit. Words stand in the file for what is not the same in every run, such as the address of a server.
func Walk(t *testing.T, file string, words ...Word) {
	t.Helper()
	run := func(decide func(*world, *golden.Case, framework.Framework) string) func(*golden.Case) string {
		return func(c *golden.Case) string {
			out := place(c, words, decide)
			for _, word := range words {
				out = strings.ReplaceAll(out, word.Meaning, word.Name)
			}
			return out
		}
	}
	golden.Walk(t, file, map[string]func(*golden.Case) string{"place": run((*world).decide), "plan": run((*world).plan)})
}

// Place decides on the nodes of one case, which is in no file, as the command "place" of Walk.
func Place(t *testing.T, input string) string {
	t.Helper()
	return golden.Run(t, input, func(c *golden.Case) string { return place(c, nil, (*world).decide) })
}

// Word is what a name in a file means.
type Word struct{ Name, Meaning string }

func place(c *golden.Case, words []Word, decide func(*world, *golden.Case, framework.Framework) string) string {
	w := read(c, words)
	f, err := w.framework(c.T())
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	return decide(w, c, f)
}

// world is what a case describes.
type world struct {
	conf  string
	nodes []*corev1.Node
	pods  []*corev1.Pod
	pod   *corev1.Pod
	// count is how many pods a gang has.
	count int
	// last is the pod that was read last.
	last *corev1.Pod
	// topologies are the Numatopologies.
	topologies []apiruntime.Object
	// queues are those besides the default one.
	queues []*model.Queue
	core   *core.Core
}

// queue reads a queue. With affinity=none it has none at all, with no list one that is empty.
func queue(c *golden.Case, l *golden.Line) *model.Queue {
	q := &model.Queue{Name: l.Word(1), UID: types.UID(l.Word(1)), Parent: l.Text("parent", ""), Weight: 1}
	if l.Text("affinity", "") != "none" {
		q.NodeGroups = &model.NodeGroups{
			Required: l.Split("required", ","), Preferred: l.Split("preferred", ","),
			AntiRequired: l.Split("anti-required", ","), AntiPreferred: l.Split("anti-preferred", ","),
		}
	}
	limits, err := model.GroupLimitsOf(map[string]string{model.NodeGroupLimitsAnnotation: l.Text("limits", "")})
	if err != nil {
		c.T().Log(err)
	}
	q.GroupLimits = limits
	return q
}

// plugin reads an entry of the tier.
func plugin(l *golden.Line, words []Word) map[string]any {
	entry, arguments := map[string]any{"name": l.Word(1)}, map[string]json.RawMessage{}
	for key, text := range l.All() {
		for _, word := range words {
			text = strings.ReplaceAll(text, word.Name, word.Meaning)
		}
		value := json.RawMessage(text)
		if !json.Valid(value) {
			value, _ = json.Marshal(text)
		}
		if strings.HasPrefix(key, "enable") && key != "enablePreferredOrder" {
			entry[key] = value
		} else {
			arguments[key] = value
		}
	}
	entry["arguments"] = arguments
	return entry
}

func read(c *golden.Case, words []Word) *world {
	w := &world{}
	var tier []map[string]any
	for _, l := range c.Lines {
		switch l.Word(0) {
		case "plugin":
			tier = append(tier, plugin(l, words))
		case "queue":
			w.queues = append(w.queues, queue(c, l))
		case "node":
			w.node(l)
		case "numa":
			w.numa(l)
		case "on":
			w.on(l)
		case "container":
			w.container(l)
		case "pod":
			w.pod = pod(l, "pod", l.List("has"))
			w.last, w.count = w.pod, l.Int("count", 1)
			w.pod.Spec.NodeSelector = pairs(l, "need")
			for key, value := range pairs(l, "prefer") {
				w.pod.Spec.Affinity = preferring(key, value)
			}
		default:
			c.Fatalf("no line %q", l.Word(0))
		}
	}
	tiers, err := json.Marshal([]any{map[string]any{"plugins": append([]map[string]any{{"name": "priority"}, {"name": "gang"}}, tier...)}})
	if err != nil {
		c.Fatalf("%v", err)
	}
	w.conf = fmt.Sprintf("actions: allocate\ntiers: %s\n", tiers)
	return w
}

func (w *world) node(l *golden.Line) {
	name := l.Word(1)
	has := l.List("has")
	if _, ok := has[corev1.ResourcePods]; !ok {
		has[corev1.ResourcePods] = resource.MustParse("110")
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pairs(l, "labels"), Annotations: pairs(l, "annotations")},
		Status:     corev1.NodeStatus{Allocatable: has, Capacity: has},
	}
	for _, taint := range l.Split("taints", ",") {
		key, effect, _ := strings.Cut(taint, ":")
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffect(effect)})
	}
	w.nodes = append(w.nodes, n)
	if l.Has("used") {
		p := pod(l, "on-"+name, l.List("used"))
		p.Spec.NodeName, p.Status.Phase = name, corev1.PodRunning
		w.pods = append(w.pods, p)
	}
}

func pod(l *golden.Line, name string, requests corev1.ResourceList) *corev1.Pod {
	annotations := pairs(l, "annotations")
	annotations[model.QueueAnnotation] = l.Text("queue", model.DefaultQueue)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Annotations: annotations, Labels: pairs(l, "labels")},
		Spec:       corev1.PodSpec{SchedulerName: "volcano"},
	}
	if requests != nil {
		p.Spec.Containers = []corev1.Container{container("c", requests)}
	}
	return p
}

func preferring(label, value string) *corev1.Affinity {
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
	}}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: term}},
	}}
}

func pairs(l *golden.Line, key string) map[string]string {
	m := map[string]string{}
	for _, pair := range l.Split(key, ";") {
		name, value, _ := strings.Cut(pair, "=")
		m[name] = value
	}
	return m
}

// framework builds the profile that the tiers make, without what does not decide on nodes.
func (w *world) framework(t *testing.T) (framework.Framework, error) {
	config, err := profile.Read("volcano-scheduler.conf", []byte(w.conf), profile.Only)
	if err != nil {
		return nil, err
	}
	p := &config.Profiles[0]
	without := sets.New(names.BatchQueue, names.Gang, names.Reclaim, upstream.DynamicResources, upstream.NodeVolumeLimits)
	keep := func(set *schedulerconfig.PluginSet) {
		set.Enabled = slices.DeleteFunc(set.Enabled, func(e schedulerconfig.Plugin) bool { return without.Has(e.Name) })
	}
	for _, set := range []*schedulerconfig.PluginSet{&p.Plugins.MultiPoint, &p.Plugins.PreFilter, &p.Plugins.PostFilter, &p.Plugins.Bind, &p.Plugins.Score} {
		keep(set)
	}
	p.Plugins.QueueSort = schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: upstream.PrioritySort}}}
	p.PluginConfig = slices.DeleteFunc(p.PluginConfig, func(c schedulerconfig.PluginConfig) bool { return without.Has(c.Name) })

	metrics.Register()
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false) // Fake API servers do not stream lists.
	shared := core.New(core.Options{Groups: w.groups()})
	w.core = shared
	told := topologies(shared.State)
	shared.State.AddScheduler("volcano")
	shared.State.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Weight: 1})
	for _, q := range w.queues {
		shared.State.UpsertQueue(q)
	}
	for _, n := range w.nodes {
		shared.State.UpsertNode(n)
	}
	for _, p := range append(w.pods, w.pod) {
		shared.State.UpsertPod(p)
	}
	told.forget()
	registry := plugins.NewInTreeRegistry()
	if err := registry.Merge(caldera.Registry(shared)); err != nil {
		return nil, err
	}
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	devices, err := devices(t.Context(), factory)
	if err != nil {
		return nil, err
	}
	f, err := runtime.NewFramework(t.Context(), registry, p,
		runtime.WithClientSet(client),
		runtime.WithInformerFactory(factory),
		runtime.WithSnapshotSharedLister(cache.NewSnapshot(w.pods, w.nodes)),
		runtime.WithEventRecorder(&events.FakeRecorder{}),
		runtime.WithPodNominator(noNominations{}),
		runtime.WithSharedDRAManager(devices),
	)
	if err != nil {
		return nil, err
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	if has(p, names.NUMAAware) {
		told.wait(len(w.topologies) + 1) // At last that there are no more.
	}
	return f, nil
}

func has(p *schedulerconfig.KubeSchedulerProfile, name string) bool {
	return slices.ContainsFunc(p.Plugins.MultiPoint.Enabled, func(e schedulerconfig.Plugin) bool { return e.Name == name })
}

// devices is what kube-scheduler gives to plugins that look for devices, of which there are none.
func devices(ctx context.Context, factory informers.SharedInformerFactory) (fwk.SharedDRAManager, error) {
	tracker, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: factory.Resource().V1().ResourceSlices()})
	if err != nil {
		return nil, err
	}
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	return dynamicresources.NewDRAManager(ctx, claims, tracker, factory), nil
}

type noNominations struct{ fwk.PodNominator }

func (noNominations) NominatedPodsForNode(string) []fwk.PodInfo { return nil }

// decide filters and scores the nodes for the pod.
func (w *world) decide(c *golden.Case, f framework.Framework) string {
	ctx := context.Background()
	state := framework.NewCycleState()
	gang.MarkPlan(state, nil)
	if _, status, _ := f.RunPreFilterPlugins(ctx, state, w.pod); !status.IsSuccess() {
		return status.Message() + "\n"
	}
	all, err := f.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		c.Fatalf("%v", err)
	}
	verdicts := map[string]string{}
	var feasible []fwk.NodeInfo
	for _, n := range all {
		if status := f.RunFilterPlugins(ctx, state, w.pod, n); status.IsSuccess() {
			feasible = append(feasible, n)
		} else {
			verdicts[n.Node().Name] = status.Message()
		}
	}
	if status := f.RunPreScorePlugins(ctx, state, w.pod, feasible); !status.IsSuccess() {
		return status.Message() + "\n"
	}
	scores, status := f.RunScorePlugins(ctx, state, w.pod, feasible)
	if !status.IsSuccess() {
		return status.Message() + "\n"
	}
	for _, s := range scores {
		var parts []string
		for _, part := range s.Scores {
			if part.Score != 0 {
				parts = append(parts, fmt.Sprintf("%s %d", part.Name, part.Score))
			}
		}
		slices.Sort(parts)
		verdicts[s.Name] = strings.TrimSuffix(fmt.Sprintf("%d  %s", s.TotalScore, strings.Join(parts, ", ")), "  ")
	}
	var out strings.Builder
	for _, n := range w.nodes {
		fmt.Fprintf(&out, "%s: %s\n", n.Name, verdicts[n.Name])
	}
	return out.String()
}
