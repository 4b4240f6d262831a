// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

const (
	namespace = metav1.NamespaceDefault
	// gangLabel names the gang a pod is of, othersLabel marks the pods that take room.
	gangLabel   = "chaos.caldera.dev/gang"
	othersLabel = "chaos.caldera.dev/others"
	// nodeCores is the size of a node.
	nodeCores = 4
	// poll is how often the state of the gangs is looked at.
	poll = 20 * time.Millisecond
)

// round is the result of one kill.
type round struct {
	// Kill is after how many binds the scheduler was killed, and Bound how many there were when it was dead.
	Kill  int `json:"kill"`
	Bound int `json:"bound"`
	// Blocked: others took all room before the scheduler ran again.
	Blocked bool `json:"blocked"`
	// Halves is how many gangs were half placed then, and Released how many of them gave back what they held.
	Halves   int `json:"halves"`
	Released int `json:"released"`
	// Longest is for how long a gang was half placed since then, Held the core seconds that members of such gangs held.
	Longest time.Duration `json:"longest"`
	Held    float64       `json:"held"`
	// Failure is what should not have happened; empty if nothing did.
	Failure string `json:"failure,omitempty"`
}

// killer kills the scheduler of a cluster.
type killer struct {
	options
	kube      kubernetes.Interface
	groups    volcanoclient.Interface
	scheduler *schedulerprocess.Process
	start     func() (*schedulerprocess.Process, error)
	watcher   *watcher
}

// kill does the rounds on a cluster that has room for all gangs.
func kill(ctx context.Context, o options, binary string, progress io.Writer) (rounds []round, err error) {
	cluster, err := localcluster.Start(ctx, localcluster.Options{
		Nodes: (o.Gangs*o.Size + nodeCores - 1) / nodeCores, Shapes: []string{fmt.Sprintf("cpu=%d,memory=64Gi", nodeCores)},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	config, err := configuration(o.HalfTimeout)
	if err != nil {
		return nil, err
	}
	k := &killer{options: o, start: func() (*schedulerprocess.Process, error) {
		return schedulerprocess.Start(schedulerprocess.Options{Binary: binary, Kubeconfig: cluster.Kubeconfig, Config: config, QPS: o.Rate, Burst: 1, Dir: o.logs})
	}}
	if k.kube, err = kubernetes.NewForConfig(cluster.RESTConfig()); err != nil {
		return nil, err
	}
	if k.groups, err = volcanoclient.NewForConfig(cluster.RESTConfig()); err != nil {
		return nil, err
	}
	if k.watcher, err = watch(ctx, k.kube); err != nil {
		return nil, err
	}
	if k.scheduler, err = k.start(); err != nil {
		return nil, err
	}
	defer func() {
		_, stopErr := k.scheduler.Stop()
		err = errors.Join(err, stopErr)
	}()
	for i := range o.Rounds {
		r, err := k.round(ctx, i)
		if err != nil {
			return rounds, fmt.Errorf("round %d: %w", i+1, err)
		}
		rounds = append(rounds, r)
		if r.Failure != "" {
			fmt.Fprintf(progress, "round %d of %d, killed after %d binds: %s\n", i+1, o.Rounds, r.Kill, r.Failure)
		} else if (i+1)%10 == 0 {
			fmt.Fprintf(progress, "round %d of %d, %d half gangs in the last one\n", i+1, o.Rounds, r.Halves)
		}
	}
	return rounds, nil
}

// configuration is the shipped one with another time for half gangs.
func configuration(halfTimeout time.Duration) ([]byte, error) {
	shipped, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil {
		return nil, err
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(shipped, &config); err != nil {
		return nil, fmt.Errorf("reading the shipped configuration: %w", err)
	}
	profiles, _ := config["profiles"].([]any)
	for _, p := range profiles {
		if profile, ok := p.(map[string]any); ok {
			profile["pluginConfig"] = []any{map[string]any{"name": "BatchQueue", "args": map[string]any{"halfTimeout": halfTimeout.String()}}}
		}
	}
	return yaml.Marshal(config)
}

// round starts gangs, kills the scheduler, and follows what becomes of them. An error is a fault of the test.
func (k *killer) round(ctx context.Context, i int) (r round, err error) {
	r.Kill = 1 + i%(k.Gangs*k.Size)
	names := make([]string, k.Gangs)
	for n := range names {
		names[n] = fmt.Sprintf("gang-%d-%d", i, n)
	}
	at, err := k.kill(ctx, &r, names)
	if err != nil {
		return r, err
	}
	before := k.watcher.gangs(names)
	for _, g := range before {
		r.Bound += len(g.bound)
		if g.half(k.Size) {
			r.Halves++
		}
	}
	if r.Blocked = r.Halves > 0 && k.Blocked > 0 && i%k.Blocked == k.Blocked-1; r.Blocked {
		if err := k.fill(ctx, i); err != nil {
			return r, err
		}
	}
	if k.scheduler, err = k.start(); err != nil {
		return r, err
	}
	if err := k.follow(ctx, &r, names, before, at); err != nil {
		return r, err
	}
	return r, k.clear(ctx, names)
}

// kill starts gangs, and kills the scheduler when so many of their pods are bound: it returns when that was. What was bound by then is known
// when it returns.
func (k *killer) kill(ctx context.Context, r *round, names []string) (at time.Time, err error) {
	killed := k.watcher.after(r.Kill)
	for _, name := range names {
		if err := k.create(ctx, name); err != nil {
			return at, err
		}
	}
	select {
	case <-killed:
	case <-time.After(k.Patience):
		r.fail("%d binds did not happen within %s", r.Kill, k.Patience)
	case <-ctx.Done():
		return at, context.Cause(ctx)
	}
	if err := k.scheduler.Kill(); err != nil {
		return at, err
	}
	return time.Now(), k.watcher.catchUp(ctx, k.kube)
}

// follow waits until no gang is half placed, makes room if others took it, and waits until all gangs are whole.
func (k *killer) follow(ctx context.Context, r *round, names []string, before map[string]gang, at time.Time) error {
	h := newHalves(before, k.Size, at)
	within := time.Now().Add(k.HalfTimeout + k.Patience)
	settled := func(now map[string]gang) bool { return h.count(now) == 0 }
	if !k.await(ctx, names, h, within, settled) {
		r.fail("%d gangs are half placed %s after the kill", h.count(k.watcher.gangs(names)), time.Since(at).Round(time.Second))
	}
	r.Released, r.Longest, r.Held = h.released, h.longest, h.held
	if h.released > 0 && !r.Blocked {
		r.fail("%d gangs gave back what they held though there was room to complete them", h.released)
	}
	if r.Blocked {
		if err := k.remove(ctx, othersLabel); err != nil {
			return err
		}
	}
	whole := func(now map[string]gang) bool {
		for _, name := range names {
			if len(now[name].bound) < k.Size {
				return false
			}
		}
		return true
	}
	if !k.await(ctx, names, h, time.Now().Add(k.Patience), whole) {
		r.fail("not all gangs are whole %s after the kill", time.Since(at).Round(time.Second))
	}
	if moved := k.watcher.moves(); moved != "" {
		r.fail("%s", moved)
	}
	return context.Cause(ctx)
}

// fail notes the first thing that should not have happened.
func (r *round) fail(format string, args ...any) {
	if r.Failure == "" {
		r.Failure = fmt.Sprintf(format, args...)
	}
}

// await looks at the gangs until something holds, and reports whether it does in time.
func (k *killer) await(ctx context.Context, names []string, h *halves, until time.Time, holds func(map[string]gang) bool) bool {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		now := k.watcher.gangs(names)
		h.see(now, time.Now())
		return holds(now), nil
	})
	return err == nil
}

// create makes a gang: a PodGroup, and a ReplicaSet that keeps its pods there.
func (k *killer) create(ctx context.Context, name string) error {
	group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: volcano.PodGroupSpec{MinMember: int32(k.Size)}}
	if _, err := k.groups.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a PodGroup: %w", err)
	}
	labels := map[string]string{gangLabel: name}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{model.GroupNameAnnotation: name}},
		Spec:       worker("1"),
	}
	template.Spec.SchedulerName = "volcano"
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(k.Size)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}
	if _, err := k.kube.AppsV1().ReplicaSets(namespace).Create(ctx, set, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a ReplicaSet: %w", err)
	}
	return nil
}

// worker is a pod that asks for so much CPU, and ends at once when it is told to.
func worker(cpu string) corev1.PodSpec {
	return corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(0)),
		Containers: []corev1.Container{{
			Name: "work", Image: "registry.k8s.io/pause:3.10",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}},
	}
}

// fill has others take all cores that are idle, as another scheduler would.
func (k *killer) fill(ctx context.Context, i int) error {
	nodes, err := k.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for _, node := range nodes.Items {
		idle := nodeCores - k.watcher.on(node.Name)
		if idle <= 0 {
			continue
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("others-%d-%s", i, node.Name), Namespace: namespace, Labels: map[string]string{othersLabel: "true"}},
			Spec:       worker(fmt.Sprint(idle)),
		}
		pod.Spec.NodeName = node.Name
		if _, err := k.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a pod of others: %w", err)
		}
	}
	return nil
}

// clear removes the gangs, and returns when their pods are gone.
func (k *killer) clear(ctx context.Context, names []string) error {
	for _, name := range names {
		background := metav1.DeletePropagationBackground
		if err := k.kube.AppsV1().ReplicaSets(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			return fmt.Errorf("deleting a ReplicaSet: %w", err)
		}
		if err := k.groups.SchedulingV1beta1().PodGroups(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("deleting a PodGroup: %w", err)
		}
	}
	return k.remove(ctx, gangLabel)
}

// remove deletes the pods that have a label, and returns when they are gone.
func (k *killer) remove(ctx context.Context, label string) error {
	ctx, cancel := context.WithTimeout(ctx, k.Patience)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 5*poll, true, func(ctx context.Context) (bool, error) {
		// A controller may create some before it knows that it is not to.
		err := k.kube.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: label})
		return k.watcher.with(label) == 0, err
	})
	if err != nil {
		return fmt.Errorf("removing the pods with label %s: %w", label, err)
	}
	return nil
}
