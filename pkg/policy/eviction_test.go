// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func TestSelectors(t *testing.T) {
	golden.Walk(t, "selectors", map[string]func(*golden.Case) string{"trial": trial})
}

func TestGuards(t *testing.T) {
	golden.Walk(t, "guards", map[string]func(*golden.Case) string{"trial": trial})
}

func TestCircles(t *testing.T) {
	golden.Walk(t, "circles", map[string]func(*golden.Case) string{"trial": trial})
}

// TestFairness has the examples of the rules by which queues that are due something do not wait: whole pods, equal shares, flow.
func TestFairness(t *testing.T) {
	golden.Walk(t, "fairness", map[string]func(*golden.Case) string{"trial": trial})
}

func TestWhoGivesWay(t *testing.T) {
	golden.Walk(t, "completion", map[string]func(*golden.Case) string{"trial": trial})
}

func TestVictimOrder(t *testing.T) {
	golden.Walk(t, "victims", map[string]func(*golden.Case) string{"trial": trial})
}

func TestWhoIsMoved(t *testing.T) {
	golden.Walk(t, "moves", map[string]func(*golden.Case) string{"trial": trial})
}

func TestWhoMayEvict(t *testing.T) {
	golden.Walk(t, "mayevict", map[string]func(*golden.Case) string{"may": may})
}

// stage is a world in which jobs may evict others.
type stage struct {
	fixture
	c       *golden.Case
	budgets []*model.DisruptionBudget
	nodes   map[string]*corev1.Node
}

// stageOf builds the world of a case: besides what golden.World reads and the plugins,
//
//	pod NAME job= | queue= [of= status=running priority= created= role= labels= annotations= class= namespace= scheduled= node=
//	    owner=KIND/NAME started= tied=port|path|volume|terms]
//	group JOB annotations= labels= [gone=true]   what the PodGroup says, or that it does not exist
//	(roles=ps:1,worker:2 of a job are its MinTaskMember)
//	keep QUEUE                   nothing may be reclaimed from it
//	budget NAME allowed= [match= disrupted= namespace=]
//	node NAME zone=
func stageOf(c *golden.Case, args config.BatchQueueArgs) *stage {
	pods, keeps, groups, budgets, nodes := take(c, "pod"), take(c, "keep"), take(c, "group"), take(c, "budget"), take(c, "node")
	s := &stage{c: c, nodes: map[string]*corev1.Node{}}
	args.Tiers = tiersOf(c)
	roles := map[model.JobKey]map[string]int{}
	for _, l := range c.Lines {
		if l.Word(0) == "job" && l.Has("roles") {
			roles[golden.KeyOf(l.Word(1))] = rolesOf(c, l)
		}
	}
	w := c.World()
	for key, least := range roles {
		g := *w.State.Job(key).Group
		g.MinTaskMember = least
		w.State.UpsertGroup(key, &g)
	}
	for _, l := range keeps {
		q := *w.State.Queue(l.Word(1))
		q.Reclaimable = false
		w.State.UpsertQueue(&q)
	}
	for _, l := range groups {
		key := golden.KeyOf(l.Word(1))
		g := *w.State.Job(key).Group
		meta := metav1.ObjectMeta{Annotations: pairs(l, "annotations"), Labels: pairs(l, "labels")}
		g.Object = &corev1.Pod{ObjectMeta: meta}
		w.State.UpsertGroup(key, &g)
	}
	for _, l := range groups {
		if l.Has("gone") {
			w.State.DeleteGroup(golden.KeyOf(l.Word(1)))
		}
	}
	for _, l := range pods {
		pod := podOf(l)
		if l.Has("claim") {
			name := l.Text("claim", "")
			w.State.UpsertClaim(&model.Claim{Namespace: pod.Namespace, Name: name, Devices: resource.Vector{{Name: "deviceclass/gpu", Value: int64(l.Int("devices", 1))}}})
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: &name}}
		}
		w.State.UpsertPod(pod)
		if key := model.JobByMarks(pod); !slices.Contains(w.Jobs, key) {
			w.Jobs = append(w.Jobs, key)
		}
	}
	for _, l := range nodes {
		s.nodes[l.Word(1)] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: l.Word(1), Labels: map[string]string{model.RevocableZoneKey: l.Text("zone", "")},
		}}
	}
	for _, l := range budgets {
		b := &model.DisruptionBudget{
			Namespace: l.Text("namespace", golden.Namespace), Name: l.Word(1), Allowed: int32(l.Int("allowed", 0)),
			Selector: labels.Nothing(), Disrupted: map[string]bool{},
		}
		if l.Has("match") {
			b.Selector = labels.SelectorFromSet(pairs(l, "match"))
		}
		for _, name := range l.Split("disrupted", ",") {
			b.Disrupted[name] = true
		}
		s.budgets = append(s.budgets, b)
	}
	s.fixture = seatArgs(c, args, w)
	return s
}

// rolesOf reads "ps:1,worker:2".
func rolesOf(c *golden.Case, l *golden.Line) map[string]int {
	least := map[string]int{}
	for _, text := range l.Split("roles", ",") {
		role, n, _ := strings.Cut(text, ":")
		count, err := strconv.Atoi(n)
		if err != nil {
			c.Fatalf("roles: %v", err)
		}
		least[role] = count
	}
	return least
}

// pairs reads "a=b,c=d".
func pairs(l *golden.Line, key string) map[string]string {
	return pairsOf(l.Split(key, ","))
}

func pairsOf(list []string) map[string]string {
	read := map[string]string{}
	for _, pair := range list {
		if name, value, ok := strings.Cut(pair, "="); ok {
			read[name] = value
		}
	}
	return read
}

func podOf(l *golden.Line) *corev1.Pod {
	created := golden.Begin.Add(l.Duration("created", 0))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: l.Word(1), UID: types.UID(l.Word(1)), Namespace: l.Text("namespace", golden.Namespace),
			CreationTimestamp: metav1.NewTime(created), Annotations: pairs(l, "annotations"), Labels: pairs(l, "labels"),
		},
		Spec: corev1.PodSpec{
			SchedulerName: "volcano", PriorityClassName: l.Text("class", ""), NodeName: l.Text("node", "node-0"),
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: l.List("of")}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if l.Has("job") {
		pod.Annotations[model.GroupNameAnnotation] = l.Text("job", "")
	} else {
		pod.Annotations[model.QueueAnnotation] = l.Text("queue", model.DefaultQueue)
	}
	if l.Has("role") {
		pod.Annotations[model.RoleKey] = l.Text("role", "")
	}
	if l.Has("priority") {
		priority := int32(l.Int("priority", 0))
		pod.Spec.Priority = &priority
	}
	if l.Has("scheduled") {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(golden.Begin.Add(l.Duration("scheduled", 0))),
		}}
	}
	if kind, name, ok := strings.Cut(l.Text("owner", ""), "/"); ok {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(name), Controller: new(true)}}
	}
	if l.Has("started") {
		pod.Status.StartTime = &metav1.Time{Time: golden.Begin.Add(l.Duration("started", 0))}
	}
	tie(&pod.Spec, l.Text("tied", ""))
	switch l.Text("status", "running") {
	case "bound":
		pod.Status.Phase = corev1.PodPending
	case "releasing":
		pod.DeletionTimestamp = &metav1.Time{Time: created}
	case "waiting":
		pod.Status.Phase, pod.Spec.NodeName = corev1.PodPending, ""
	}
	return pod
}

// tie gives a pod what ties it to its node, or to other pods.
func tie(spec *corev1.PodSpec, by string) {
	switch by {
	case "port":
		spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
	case "path":
		spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}}}
	case "volume":
		spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	case "terms":
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1}}
	}
}

// moved are the moves of pods so far, by controller.
type moved map[types.UID]time.Time

func (m moved) Of(controller types.UID) time.Time { return m[controller] }

func (m moved) Since(at time.Time) []time.Time {
	times := slices.SortedFunc(maps.Values(m), time.Time.Compare)
	return slices.DeleteFunc(times, func(t time.Time) bool { return !t.After(at) })
}

// argsOf reads the options "actions=reclaim,preempt whole=false moves=maxPods=2,maxAge=0s".
func argsOf(c *golden.Case) config.BatchQueueArgs {
	var args config.BatchQueueArgs
	for _, name := range c.Options.Split("actions", ",") {
		args.Actions = append(args.Actions, config.Action(name))
	}
	if c.Options.Has("whole") {
		whole := map[string]runtime.RawExtension{"allowWholeBundle": {Raw: []byte(c.Options.Text("whole", ""))}}
		for _, action := range []config.Action{config.GangPreempt, config.GangReclaim} {
			args.Configurations = append(args.Configurations, config.ActionConfiguration{Name: action, Arguments: whole})
		}
	}
	moves := map[string]runtime.RawExtension{}
	for name, value := range pairsOf(c.Options.Split("moves", ",")) {
		moves[name] = runtime.RawExtension{Raw: []byte(strconv.Quote(value))}
	}
	args.Configurations = append(args.Configurations, config.ActionConfiguration{Name: config.Consolidate, Arguments: moves})
	return args
}

// victim finds a pod by name.
func (s *stage) victim(name string) model.Victim {
	for _, key := range s.Jobs {
		job := s.State.Job(key)
		for _, task := range job.Tasks {
			if task.Pod.Name == name {
				return model.Victim{Task: task, Job: job, Node: s.nodes[task.Node]}
			}
		}
	}
	s.c.Fatalf("no pod %q", name)
	return model.Victim{}
}

func (s *stage) victims(names []string) []model.Victim {
	list := make([]model.Victim, len(names))
	for i, name := range names {
		list[i] = s.victim(name)
	}
	return list
}

// world is what trials look at besides.
func (s *stage) world(now time.Time, barred, refused []string) policy.EvictionWorld {
	return policy.EvictionWorld{
		Now: now,
		Budgets: func(namespace string) []*model.DisruptionBudget {
			return slices.DeleteFunc(slices.Clone(s.budgets), func(b *model.DisruptionBudget) bool { return b.Namespace != namespace })
		},
		BarredQueues: func(queue string) time.Time { return soonIf(slices.Contains(barred, queue), now) },
		Refused:      func(uid types.UID) time.Time { return soonIf(slices.Contains(refused, string(uid)), now) },
	}
}

func soonIf(yes bool, now time.Time) time.Time {
	if !yes {
		return time.Time{}
	}
	return now.Add(time.Minute)
}

// steps of a trial.
var steps = []string{
	"entitled", "seek", "relax", "judge", "each", "take", "return", "gain", "lose", "order", "reversible", "again", "starving",
}

// trial plays a trial "action= job= [now= barred= refused= lapsed= lapsing= moved=CONTROLLER=AGO]" step by step: "each" judges every pod on a node by itself,
// "judge" some together, "take" and "gain" have it come about. Lapsed are broken gangs whose time is over, lapsing those whose time is in a
// minute.
func trial(c *golden.Case) string {
	var plan []*golden.Line
	for _, l := range c.Lines {
		if slices.Contains(steps, l.Word(0)) {
			plan = append(plan, l)
		}
	}
	for _, step := range steps {
		take(c, step)
	}
	o := c.Options
	job, action := golden.KeyOf(o.Text("job", "")), config.Action(o.Text("action", ""))
	now := golden.Begin.Add(o.Duration("now", 0))
	barred, refused := o.Split("barred", ","), o.Split("refused", ",")
	s := stageOf(c, argsOf(c))
	world := s.world(now, barred, refused)
	before := moved{}
	for controller, ago := range pairsOf(o.Split("moved", ",")) {
		long, err := time.ParseDuration(ago)
		if err != nil {
			c.Fatalf("moved: %v", err)
		}
		before[types.UID(controller)] = now.Add(-long)
	}
	world.Moves = before
	world.Lapses = map[model.JobKey]time.Time{}
	for _, name := range o.Split("lapsed", ",") {
		world.Lapses[golden.KeyOf(name)] = now
	}
	for _, name := range o.Split("lapsing", ",") {
		world.Lapses[golden.KeyOf(name)] = now.Add(time.Minute)
	}
	tr := s.Trial(action, s.State.Job(job), world)
	table := &golden.Table{}
	for _, l := range plan {
		s.play(tr, table, l)
	}
	return table.String()
}

// play takes one step.
func (s *stage) play(tr *policy.Trial, table *golden.Table, l *golden.Line) {
	names := l.Words(1)
	title := strings.Join(append([]string{l.Word(0)}, names...), " ")
	switch l.Word(0) {
	case "entitled":
		table.Row("entitled to "+golden.Vector(l.Amounts("to")), said(tr.Entitled(l.Amounts("to"))))
	case "seek":
		table.Row("seeks "+golden.Vector(l.Amounts("for")), said(tr.Seek(l.Amounts("for"))))
	case "relax":
		table.Row("relax", tr.Relax())
	case "each":
		for _, v := range s.onNodes() {
			v.Node = s.nodes[v.Task.Node]
			table.Row(v.Task.Pod.Name, v.Job.Key.Name, yesOr(decide(tr, v)))
		}
	case "judge":
		table.Row(title, yesOr(decide(tr, s.victims(names)...)))
	case "take":
		for _, v := range s.victims(names) {
			tr.Take(v)
		}
	case "return":
		for _, v := range s.victims(names) {
			tr.Return(v)
		}
	case "gain":
		for _, v := range s.victims(names) {
			tr.Gain(v.Task)
		}
	case "lose":
		for _, v := range s.victims(names) {
			tr.Lose(v.Task)
		}
	case "order":
		all := s.onNodes()
		slices.SortFunc(all, tr.Compare)
		for _, v := range all {
			table.Row(v.Task.Pod.Name, v.Job.Key.Name, v.Job.Queue, "distance "+strconv.Itoa(tr.Distance(v)))
		}
	case "reversible":
		var gained []*model.Task
		for _, v := range s.victims(l.Split("gained", ",")) {
			gained = append(gained, v.Task)
		}
		table.Row("reversible", cmp.Or(tr.Reversible(s.victims(l.Split("taken", ",")), gained), "no"))
	case "again":
		at := "never"
		if !tr.Again().IsZero() {
			at = "after " + tr.Again().Sub(golden.Begin).String()
		}
		table.Row("again", at)
	}
}

// decide says why these are no victims: the first of them that cannot be one, or all of them together.
func decide(tr *policy.Trial, vs ...model.Victim) string {
	for _, v := range vs {
		if why := tr.Candidate(v); why != "" {
			return why
		}
	}
	return tr.Evaluate(vs...)
}

func yesOr(why string) string {
	if why == "" {
		return "yes"
	}
	return "no: " + why
}

// may shows of every job that has tasks waiting whether it starves, and by which actions it might find a victim.
func may(c *golden.Case) string {
	args := argsOf(c)
	s := stageOf(c, args)
	table := &golden.Table{}
	for _, key := range s.Jobs {
		if job := s.State.Job(key); job.Counts.ByStatus[model.Pending] > 0 {
			state := "content"
			if s.Starving(job) {
				state = "starving"
			}
			var names []string
			for _, action := range s.MayEvict(job) {
				names = append(names, string(action))
			}
			table.Row(key.Name, state, strings.Join(names, " "))
		}
	}
	return table.String()
}
