// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

const (
	namespace = metav1.NamespaceDefault
	// tick is how often the load is looked after, and the judge is.
	tick = 50 * time.Millisecond
	// requests is how many requests the load makes at a time.
	requests = 8
	// runFor and terminateAfter are annotations by which the simulated kubelets end pods.
	runFor         = "localcluster.caldera.dev/run-for"
	terminateAfter = "localcluster.caldera.dev/terminate-after"
)

// queues are those of the load, of equal weight.
var queues = []string{"even", "odd"}

// load has gangs come, creates again what was evicted of them, and deletes those that are done.
type load struct {
	judge  *judge
	kube   kubernetes.Interface
	groups volcanoclient.Interface
	cores  int

	calls   chan func(context.Context)
	workers sync.WaitGroup
	failed  atomic.Int64

	mu     sync.Mutex // guards the rest
	random *rand.Rand
	gangs  map[string]*gang
	number int
	// high is the queue that asks for more than there is. The other one asks for little.
	high int
	// over: no more gangs come.
	over bool
}

// gang is a PodGroup and its pods, which all have to succeed.
type gang struct {
	name, queue string
	least, size int
	runs        time.Duration
	// pods are those that were created and are not gone; one that has not been seen yet is nil. next numbers them.
	pods map[string]*corev1.Pod
	next int
}

func newLoad(ctx context.Context, s *stage) *load {
	l := &load{
		judge: s.judge, kube: s.kube, groups: s.groups, cores: s.Nodes * nodeCores,
		calls: make(chan func(context.Context), 1<<14), random: rand.New(rand.NewPCG(s.Seed, 0)), gangs: map[string]*gang{},
	}
	for range requests {
		l.workers.Go(func() {
			for call := range l.calls {
				call(ctx)
			}
		})
	}
	return l
}

// run plays until the context ends.
func (l *load) run(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case now := <-ticker.C:
			l.judge.tick(now)
			l.step()
		}
	}
	close(l.calls)
	l.workers.Wait()
}

// stop lets no more gangs come.
func (l *load) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// left are the gangs that are not done.
func (l *load) left() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.gangs))
}

// call makes requests in the background. What is there or gone already is as good.
func (l *load) call(request func(context.Context) error) {
	l.calls <- func(ctx context.Context) {
		err := request(ctx)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
			l.failed.Add(1)
		}
	}
}

// step looks after the gangs that there are, and has others come. A queue asks for all that there is until it has borrowed most of it, and then the other one does, which
// has to take it back.
func (l *load) step() {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked, held := map[string]int{}, map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(l.gangs)) {
		g := l.gangs[name]
		held[g.queue] += g.holds()
		if missing := l.look(g); missing >= 0 {
			asked[g.queue] += missing
		}
	}
	if l.over {
		return
	}
	if held[queues[l.high]] > l.cores*2/3 {
		l.high = (l.high + 1) % len(queues)
	}
	for i, queue := range queues {
		wanted := l.cores / 10
		if i == l.high {
			wanted = l.cores * 9 / 8
		}
		if asked[queue] < wanted {
			l.begin(queue)
		}
	}
}

// holds is how many cores a gang has.
func (g *gang) holds() int {
	n := 0
	for _, p := range g.pods {
		if p != nil && p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			n++
		}
	}
	return n
}

// look creates what a gang lacks of its pods, and deletes it once all have succeeded. It returns how many have not, less than 0 if it is done.
func (l *load) look(g *gang) int {
	alive, done := 0, 0
	for _, p := range g.pods {
		switch {
		case p != nil && p.Status.Phase == corev1.PodSucceeded:
			done++
		case p == nil || p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed:
			alive++
		}
	}
	if done >= g.size {
		l.end(g)
		return -1
	}
	var pods []*corev1.Pod
	for range g.size - done - alive {
		pods = append(pods, g.pod())
	}
	if len(pods) > 0 {
		l.call(func(ctx context.Context) error { return l.create(ctx, g, pods) })
	}
	return g.size - done
}

// begin has a gang come.
func (l *load) begin(queue string) {
	l.number++
	g := draw(l.random, l.cores)
	g.name, g.queue, g.pods = fmt.Sprintf("gang-%05d", l.number), queue, map[string]*corev1.Pod{}
	l.gangs[g.name] = g
	l.judge.expect(g.name, g.least)
	group := &volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: g.name, Namespace: namespace},
		Spec:       volcano.PodGroupSpec{MinMember: int32(g.least), Queue: queue},
	}
	var pods []*corev1.Pod
	for range g.size {
		pods = append(pods, g.pod())
	}
	l.call(func(ctx context.Context) error {
		if _, err := l.groups.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
			return err
		}
		return l.create(ctx, g, pods)
	})
}

// draw makes up a gang: an elastic one, whose pods run for longer and can be reclaimed; one that needs all of its pods; now and then one that needs a quarter of all
// cores, and has to wait for others.
func draw(r *rand.Rand, cores int) *gang {
	switch kind := r.IntN(20); {
	case kind < 10:
		return &gang{least: 2, size: 6 + r.IntN(7), runs: 10 * time.Second}
	case kind < 19:
		n := 2 + r.IntN(15)
		return &gang{least: n, size: n, runs: time.Duration(2+r.IntN(4)) * time.Second}
	default:
		return &gang{least: cores / 4, size: cores / 4, runs: 3 * time.Second}
	}
}

// pod is the next pod of a gang.
func (g *gang) pod() *corev1.Pod {
	p := worker(fmt.Sprintf("%s-%d", g.name, g.next), "1")
	p.Labels = map[string]string{gangLabel: g.name}
	p.Annotations = map[string]string{model.GroupNameAnnotation: g.name, runFor: g.runs.String(), terminateAfter: "300ms"}
	g.next++
	g.pods[p.Name] = nil
	return p
}

// worker is a batch pod that asks for so much CPU.
func worker(name, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			SchedulerName: "volcano", RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(5)),
			Containers: []corev1.Container{{
				Name: "work", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
			}},
		},
	}
}

func (l *load) create(ctx context.Context, g *gang, pods []*corev1.Pod) error {
	for _, p := range pods {
		if _, err := l.kube.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			l.mu.Lock()
			delete(g.pods, p.Name) // The next look makes another one.
			l.mu.Unlock()
			return err
		}
	}
	return nil
}

// end deletes a gang.
func (l *load) end(g *gang) {
	delete(l.gangs, g.name)
	l.judge.end(g.name)
	l.call(func(ctx context.Context) error {
		// At once: they have succeeded.
		err := l.kube.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)},
			metav1.ListOptions{LabelSelector: gangLabel + "=" + g.name})
		if err != nil {
			return err
		}
		return l.groups.SchedulingV1beta1().PodGroups(namespace).Delete(ctx, g.name, metav1.DeleteOptions{})
	})
}

// saw takes in a pod as it is, or that it is gone.
func (l *load) saw(p *corev1.Pod, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gangs[p.Labels[gangLabel]]
	switch {
	case g == nil:
	case gone:
		delete(g.pods, p.Name)
	default:
		g.pods[p.Name] = p
	}
}
