// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
)

const (
	namespace     = "team"
	schedulerName = "volcano"
	// jobLabel and indexLabel say which pod of which job it is.
	jobLabel   = "job"
	indexLabel = "index"
	// partLabel numbers its subgroup.
	partLabel = "part"
	// tick is how often kubelets and controllers look.
	tick = time.Second
	// settling is how long the cluster has to come to rest when nothing fails any more. A gang that was released again and again rests half
	// an hour.
	settling = 45 * time.Minute
)

var (
	nodes  = corev1.SchemeGroupVersion.WithResource("nodes")
	groups = volcano.SchemeGroupVersion.WithResource("podgroups")
	queues = volcano.SchemeGroupVersion.WithResource("queues")
)

// world is the cluster: the API server's objects, and kubelets and controllers that live by the clock.
type world struct {
	s     *scenario
	api   *memory.API
	began time.Time
	jobs  map[string]*life
	// nodesBack and queuesBack are when what is away comes back.
	nodesBack  map[string]time.Time
	queuesBack map[string]time.Time
	made       int
	docket     *docket
	// excused is until when what is on a node may be more than it holds: what a scheduler was shown may be older than that.
	excused map[string]time.Time

	mu sync.Mutex // guards what follows, which requests read
	// refusals are what the API server refuses.
	refusals []refusal
	// happened counts events that came to pass.
	happened map[string]int
}

// life is what becomes of a job.
type life struct {
	job
	submitted, deleted bool
	// min is its minMember now, least the smallest it ever was: that one may be what a scheduler knows.
	min, least int
	// whole: at some time its minimum was on nodes. Half: at some time before too few were. Started is the minimum with which it was whole since
	// it was last on no node; 0 if it was not.
	whole, half bool
	started     int
	// phase is what its PodGroup said at the last look, fits is since when there has been room for it; zero if there is none.
	phase volcano.PodGroupPhase
	fits  time.Time
	// groupBack is when its PodGroup comes back; zero if it is not away.
	groupBack time.Time
}

// refusal is what a webhook would do: from the moment it is there.
type refusal struct {
	verb, job string
	index     int
	until     time.Time // zero: for ever
}

func newWorld(s *scenario, api *memory.API) (*world, error) {
	w := &world{
		s: s, api: api, began: time.Now(), jobs: map[string]*life{}, nodesBack: map[string]time.Time{}, queuesBack: map[string]time.Time{},
		happened: map[string]int{}, excused: map[string]time.Time{},
	}
	w.docket = newDocket(w)
	var errs []error
	for name, value := range map[string]int32{"low": 1, "high": 1000} {
		errs = append(errs, api.Add(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}))
	}
	for _, name := range []string{"default", "a", "b"} {
		errs = append(errs, w.addQueue(name))
	}
	for _, n := range s.Nodes {
		errs = append(errs, api.Add(nodeObject(n.Name, n.Cores)))
	}
	for _, j := range s.Jobs {
		w.jobs[j.Name] = &life{job: j, min: j.Min, least: j.Min}
	}
	return w, errors.Join(errs...)
}

func (w *world) addQueue(name string) error {
	q := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: volcano.QueueSpec{Weight: 1}, Status: volcano.QueueStatus{State: volcano.QueueStateOpen}}
	if name == cappedQueue && w.s.Capability > 0 {
		q.Spec.Capability = cores(w.s.Capability)
	}
	return w.api.Add(q)
}

// created is when the PodGroup of a job was; ok is false if there is none.
func (w *world) created(l *life) (at time.Time, ok bool) {
	o, err := w.api.Get(groups, namespace, l.Name)
	if err != nil {
		return time.Time{}, false
	}
	return o.(*volcano.PodGroup).CreationTimestamp.Time, true
}

func cores(n int) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(n), resource.DecimalSI)}
}

func nodeObject(name string, size int) *corev1.Node {
	has := cores(size)
	has[corev1.ResourcePods], has[corev1.ResourceMemory] = resource.MustParse("110"), resource.MustParse("64Gi")
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: has, Capacity: has, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

// veto is what the API server says to a request of the scheduler.
func (w *world) veto(info *request.RequestInfo) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.refusals {
		if !r.until.IsZero() && !time.Now().Before(r.until) || info.Verb != "create" || "pods/"+info.Subresource != r.verb {
			continue
		}
		p := w.pod(info.Name)
		if r.job == "" || p != nil && p.Labels[jobLabel] == r.job && (r.index < 0 || p.Labels[indexLabel] == strconv.Itoa(r.index)) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: r.verb}, info.Name, errors.New("a webhook says no"))
		}
	}
	return nil
}

// erring names that a plugin errs over a pod: when it is placed, or before, when that is planned.
func erring(placing bool) string {
	if placing {
		return "place"
	}
	return "plan"
}

// evicted notes that the API server has agreed to evict a pod.
func (w *world) evicted(name string, of plans) {
	if p := w.pod(name); p != nil {
		w.docket.enter(name, sizeOf(p), of)
	}
}

// errs is the error of a plugin over a pod of a job; nil if it has none.
func (w *world) errs(job string, placing bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.refusals {
		if r.verb == erring(placing) && r.job == job && (r.until.IsZero() || time.Now().Before(r.until)) {
			return errors.New("the other end does not answer")
		}
	}
	return nil
}

// pods returns the pods by name. They are not copied, as judges look at all of them every second: see update.
func (w *world) pods() []*corev1.Pod {
	objects := w.api.Objects(memory.Pods)
	pods := make([]*corev1.Pod, len(objects))
	for i, o := range objects {
		pods[i] = o.(*corev1.Pod)
	}
	return pods
}

func (w *world) pod(name string) *corev1.Pod {
	o, err := w.api.Get(memory.Pods, namespace, name)
	if err != nil {
		return nil
	}
	return o.(*corev1.Pod)
}

func (w *world) node(name string) *corev1.Node {
	o, err := w.api.Get(nodes, "", name)
	if err != nil {
		return nil
	}
	return o.(*corev1.Node)
}

// podOf returns the live pod of an index of a job, or nil.
func (w *world) podOf(job string, index int) *corev1.Pod {
	for _, p := range w.pods() {
		if p.Labels[jobLabel] == job && p.Labels[indexLabel] == strconv.Itoa(index) && !finished(p) {
			return p
		}
	}
	return nil
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// update changes a pod that may have gone meanwhile.
func (w *world) update(p *corev1.Pod, change func(*corev1.Pod)) {
	changed := p.DeepCopy()
	change(changed)
	w.must(w.api.Update(memory.Pods, changed, namespace))
}

// must tolerates only that somebody else was faster: schedulers write while the world does.
func (w *world) must(err error) {
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		panic(err)
	}
}

// happen lets an event happen.
func (w *world) happen(e event) {
	until := time.Now().Add(time.Duration(e.For))
	if e.For == 0 {
		until = time.Time{}
	}
	w.happened[e.Kind]++
	// What happens may be the end of a gang that has been whole for less than a second.
	w.witness()
	switch e.Kind {
	case bindsRefused:
		w.refuse(refusal{verb: "pods/binding", job: e.Target, index: e.N, until: until})
	case evictsRefused:
		w.refuse(refusal{verb: "pods/eviction", until: until})
	case pluginErrs:
		w.refuse(refusal{verb: erring(e.N > 0), job: e.Target, until: until})
	case nodeLost, nodeCordoned, nodeShrunk:
		w.hurt(e, until)
	case podDeleted, podFailed, podBoundByElse, podTouched:
		if p := w.podOf(e.Target, e.N); p != nil {
			w.meddle(e.Kind, p)
		}
	case groupReplaced, minimumChanged:
		w.edit(e, until)
	case jobDeleted:
		w.remove(w.jobs[e.Target])
	case queueClosed:
		if e.Target != "default" {
			w.queuesBack[e.Target] = until
			w.must(w.api.Remove(queues, "", e.Target))
		}
	}
}

// edit changes a job's PodGroup, or takes it away for a while.
func (w *world) edit(e event, until time.Time) {
	l := w.jobs[e.Target]
	if e.Kind == groupReplaced {
		if l.submitted && !l.deleted && l.groupBack.IsZero() {
			l.groupBack = until
			w.must(w.api.Remove(groups, namespace, e.Target))
		}
		return
	}
	if o, err := w.api.Get(groups, namespace, e.Target); err == nil {
		g := o.(*volcano.PodGroup)
		g.Spec.MinMember, g.Spec.SubGroupPolicy = int32(e.N), l.subGroups(e.N)
		l.min, l.least = e.N, min(l.least, e.N)
		w.must(w.api.Update(groups, g, namespace))
	}
}

func (w *world) refuse(r refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusals = append(w.refusals, r)
}

// excuse has no node judged for as long as old requests and news may be under way.
func (w *world) excuse(until time.Time, names ...string) {
	until = until.Add(time.Minute)
	for _, name := range names {
		if until.After(w.excused[name]) {
			w.excused[name] = until
		}
	}
}

// hurt takes a node, or part of it, for a while.
func (w *world) hurt(e event, until time.Time) {
	n := w.node(e.Target)
	if n == nil {
		return
	}
	w.nodesBack[e.Target] = until
	w.excuse(until, e.Target)
	switch e.Kind {
	case nodeLost:
		w.must(w.api.Remove(nodes, "", e.Target))
		return
	case nodeCordoned:
		n.Spec.Unschedulable = true
	case nodeShrunk:
		for _, size := range w.s.Nodes {
			if size.Name == e.Target {
				fewer := nodeObject(e.Target, max(0, size.Cores-e.N))
				n.Status.Allocatable, n.Status.Capacity = fewer.Status.Allocatable, fewer.Status.Capacity
			}
		}
	}
	w.must(w.api.Update(nodes, n, ""))
}

// meddle does to a pod what the scheduler does not expect.
func (w *world) meddle(kind string, p *corev1.Pod) {
	switch kind {
	case podDeleted:
		w.must(w.api.Delete(memory.Pods, namespace, p.Name))
	case podFailed:
		if p.Spec.NodeName != "" {
			w.update(p, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		}
	case podTouched:
		w.update(p, func(p *corev1.Pod) { p.Annotations["touched"] = time.Now().String() })
	case podBoundByElse:
		if p.Spec.NodeName != "" || p.DeletionTimestamp != nil || len(p.Spec.SchedulingGates) > 0 {
			return
		}
		for _, n := range w.room() {
			if n.idle >= sizeOf(p) {
				w.update(p, func(p *corev1.Pod) { p.Spec.NodeName = n.name })
				w.excuse(time.Now(), n.name)
				return
			}
		}
	}
}

func sizeOf(p *corev1.Pod) int {
	return int(p.Spec.Containers[0].Resources.Requests.Cpu().Value())
}

// idle is a node that takes pods, and how many cores of it nobody has.
type idle struct {
	name string
	idle int
}

// room returns the nodes that take pods, the emptiest first.
func (w *world) room() []idle {
	used := map[string]int{}
	for _, p := range w.pods() {
		if p.Spec.NodeName != "" && !finished(p) {
			used[p.Spec.NodeName] += sizeOf(p)
		}
	}
	var all []idle
	for _, o := range w.api.Objects(nodes) {
		n := o.(*corev1.Node)
		if !n.Spec.Unschedulable {
			all = append(all, idle{n.Name, int(n.Status.Allocatable.Cpu().Value()) - used[n.Name]})
		}
	}
	slices.SortFunc(all, func(a, b idle) int { return cmp.Or(b.idle-a.idle, cmp.Compare(a.name, b.name)) })
	return all
}

// work does what kubelets and controllers do now.
func (w *world) work() {
	now := time.Now()
	for _, s := range w.s.Nodes {
		if back, ok := w.nodesBack[s.Name]; ok && !now.Before(back) {
			delete(w.nodesBack, s.Name)
			w.must(w.api.Remove(nodes, "", s.Name))
			w.must(w.api.Add(nodeObject(s.Name, s.Cores)))
		}
	}
	for _, name := range []string{"a", "b"} {
		if back, ok := w.queuesBack[name]; ok && !now.Before(back) {
			delete(w.queuesBack, name)
			w.must(w.addQueue(name))
		}
	}
	w.witness()
	for _, p := range w.pods() {
		w.kubelet(p, now)
	}
	for _, j := range w.s.Jobs {
		w.control(w.jobs[j.Name], now)
	}
}

// kubelet starts and ends pods.
func (w *world) kubelet(p *corev1.Pod, now time.Time) {
	l := w.jobs[p.Labels[jobLabel]]
	switch {
	case p.Spec.NodeName != "" && w.node(p.Spec.NodeName) == nil:
		// What garbage collection does with pods of nodes that are gone.
		w.must(w.api.Remove(memory.Pods, namespace, p.Name))
	case p.DeletionTimestamp != nil:
		if now.Sub(p.DeletionTimestamp.Time) >= time.Duration(l.Grace) {
			w.must(w.api.Remove(memory.Pods, namespace, p.Name))
		}
	case p.Spec.NodeName != "" && p.Status.Phase == corev1.PodPending:
		started := metav1.NewTime(now)
		w.update(p, func(p *corev1.Pod) { p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &started })
	case p.Status.Phase == corev1.PodRunning && l.Lasts > 0 && now.Sub(p.Status.StartTime.Time) >= time.Duration(l.Lasts):
		w.update(p, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	case p.Status.Phase == corev1.PodFailed:
		w.must(w.api.Remove(memory.Pods, namespace, p.Name))
	}
}

// witness takes note of the jobs whose minimum is on nodes.
func (w *world) witness() {
	on := map[string]int{}
	for _, p := range w.pods() {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed {
			on[p.Labels[jobLabel]]++
		}
	}
	for name, l := range w.jobs {
		l.whole = l.whole || l.submitted && on[name] >= l.least
		l.half = l.half || !l.whole && on[name] > 0
		switch {
		case on[name] == 0:
			l.started = 0
		case l.started == 0 && on[name] >= l.min:
			l.started = l.min
		}
	}
}

// control submits a job, and has as many pods of it there as are to be.
func (w *world) control(l *life, now time.Time) {
	if l.deleted || now.Sub(w.began) < time.Duration(l.At) {
		return
	}
	if !l.submitted {
		l.submitted = true
		w.must(w.api.Add(groupOf(l)))
	}
	if !l.groupBack.IsZero() && !now.Before(l.groupBack) {
		l.groupBack = time.Time{}
		w.must(w.api.Add(groupOf(l)))
	}
	there := map[string]bool{}
	for _, p := range w.pods() {
		if p.Labels[jobLabel] == l.Name {
			there[p.Labels[indexLabel]] = true
		}
	}
	for i := range l.Size {
		if !there[strconv.Itoa(i)] {
			w.made++
			w.must(w.api.Add(w.podObject(l, i, w.made)))
		}
	}
}

// remove deletes a job with all it has.
func (w *world) remove(l *life) {
	if !l.submitted || l.deleted {
		return
	}
	l.deleted = true
	w.must(w.api.Remove(groups, namespace, l.Name))
	for _, p := range w.pods() {
		if p.Labels[jobLabel] == l.Name {
			w.must(w.api.Delete(memory.Pods, namespace, p.Name))
		}
	}
}

func groupOf(l *life) *volcano.PodGroup {
	asks := cores(l.min * l.Cores)
	return &volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: l.Name},
		Spec: volcano.PodGroupSpec{
			MinMember: int32(l.min), Queue: l.Queue, PriorityClassName: l.Class, MinResources: &asks, SubGroupPolicy: l.subGroups(l.min),
		},
		Status: volcano.PodGroupStatus{Phase: volcano.PodGroupPending},
	}
}

// subGroups are the policies by which a job of so many members starts in subgroups.
func (l *life) subGroups(least int) []volcano.SubGroupPolicySpec {
	if l.Part == 0 {
		return nil
	}
	return []volcano.SubGroupPolicySpec{{
		Name: "part", SubGroupSize: new(int32(l.Part)), MinSubGroups: new(int32(least / l.Part)), MatchLabelKeys: []string{partLabel},
	}}
}

// partOf numbers the subgroup of a pod.
func (l *life) partOf(p *corev1.Pod) int {
	part, err := strconv.Atoi(p.Labels[partLabel])
	if err != nil || part >= l.Size/l.Part {
		panic(fmt.Sprintf("pod %s is in subgroup %q of %s", p.Name, p.Labels[partLabel], l.Name))
	}
	return part
}

// podObject is a pod of a job, the one that was made as that number.
func (w *world) podObject(l *life, index, made int) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%s-%d-%d", l.Name, index, made),
			Labels:      map[string]string{jobLabel: l.Name, indexLabel: strconv.Itoa(index)},
			Annotations: map[string]string{model.GroupNameAnnotation: l.Name, volcano.PodPreemptable: "true"},
		},
		Spec: corev1.PodSpec{
			SchedulerName: schedulerName, TerminationGracePeriodSeconds: new(int64(time.Duration(l.Grace).Seconds())), PriorityClassName: l.Class, Priority: new(map[string]int32{"low": 1, "high": 1000}[l.Class]),
			Containers: []corev1.Container{{Name: "work", Resources: corev1.ResourceRequirements{Requests: cores(l.Cores)}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if l.Part > 0 {
		p.Labels[partLabel] = strconv.Itoa(index / l.Part)
	}
	if w.s.Gated {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: model.QueueGate}}
	}
	switch l.Stuck {
	case noClaim:
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: new("nowhere")}}
	case noVolume:
		claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "nowhere"}
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}}}
	case noNode:
		p.Spec.NodeSelector = map[string]string{"nobody": "has"}
	case gated:
		p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: "nobody.opens/this"})
	case unwelcome:
		p.Annotations[unwelcome] = "true"
	case tooLarge:
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("5Ei")
	}
	return p
}

// heal undoes what can be undone.
func (w *world) heal() {
	for name := range w.nodesBack {
		w.nodesBack[name] = time.Now()
	}
	for name := range w.queuesBack {
		w.queuesBack[name] = time.Now()
	}
	for _, l := range w.jobs {
		if !l.groupBack.IsZero() {
			l.groupBack = time.Now()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusals = slices.DeleteFunc(w.refusals, func(r refusal) bool { return !r.until.IsZero() })
}
