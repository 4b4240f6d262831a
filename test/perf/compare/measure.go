// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

const (
	namespace = "default"
	// groupLabel names a pod's gang, for the measurement only; plain pods carry it too.
	groupLabel = "compare.caldera.dev/group"
	// patience is how long a run may stand still.
	patience = 2 * time.Minute
	creators = 32
)

var (
	calderaConfig = read("config/scheduler-config.yaml")
	stockConfig   = []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
)

func read(name string) []byte {
	data, err := manifests.All.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return data
}

func build(ctx context.Context, binary, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s: %w", pkg, err)
	}
	return nil
}

// result is what one run showed.
type result struct {
	// rate is pods bound a second, from the first bind to the last.
	rate  float64
	first time.Duration // from the scheduler's start to the first bind
	usage schedulerprocess.Usage
	// p50 and p99 are over gangs: from the first bind of the run to the last of the gang.
	p50, p99 time.Duration
	// spread is the median time between the first and the last bind of a gang.
	spread time.Duration
	// told is how long after the last bind the last event of a bound pod was written.
	told time.Duration
}

func (r result) String() string {
	return fmt.Sprintf("%.0f pods/s, %.1f s CPU, %d MB, first bind after %s, last event %s after the last bind", r.rate, r.usage.CPU.Seconds(),
		r.usage.PeakMemory>>20, r.first.Round(time.Millisecond), r.told.Round(time.Millisecond))
}

// measure runs one scheduler once, on a cluster of its own.
func measure(ctx context.Context, w workload, c contender) (r result, err error) {
	cluster, err := localcluster.Start(ctx, localcluster.Options{
		Nodes: w.nodes, Shapes: []string{"cpu=32,memory=256Gi"}, NoKubelets: true, NoControllers: true,
	})
	if err != nil {
		return r, err
	}
	defer func() {
		if stopErr := cluster.Stop(); err == nil {
			err = stopErr
		}
	}()
	if err := create(ctx, w, c, cluster); err != nil {
		return r, err
	}
	binds, stop, err := watch(ctx, cluster)
	if err != nil {
		return r, err
	}
	defer stop()

	dir := w.keepLogs
	if dir == "" {
		if dir, err = os.MkdirTemp("", "compare"); err != nil {
			return r, err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a leftover log does no harm
	}
	start := time.Now()
	scheduler, err := schedulerprocess.Start(schedulerprocess.Options{
		Binary: c.binary, Kubeconfig: cluster.Kubeconfig, Config: c.config, QPS: w.qps, Burst: w.qps, Dir: dir, Args: c.args,
	})
	if err != nil {
		return r, err
	}
	times, waitErr := await(ctx, binds, w.gangs*w.size)
	var told time.Duration
	if waitErr == nil {
		told, waitErr = awaitEvents(ctx, cluster, w.gangs*w.size)
	}
	usage, err := scheduler.Stop()
	if waitErr != nil {
		return r, fmt.Errorf("%w (see %s)", waitErr, scheduler.LogFile)
	}
	if err != nil {
		return r, err
	}
	r = summarise(times, start)
	r.usage, r.told = usage, told
	return r, nil
}

// create makes the gangs' PodGroups and all pods.
func create(ctx context.Context, w workload, c contender, cluster *localcluster.Cluster) error {
	kube, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		return err
	}
	groups, err := volcanoclient.NewForConfig(cluster.RESTConfig())
	if err != nil {
		return err
	}
	errs := make(chan error, 1)
	keep := func(err error) {
		select {
		case errs <- err:
		default:
		}
	}
	for i := range c.queues {
		queue := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: queueName(i)}, Spec: volcano.QueueSpec{Weight: int32(i + 1)}}
		if _, err := groups.SchedulingV1beta1().Queues().Create(ctx, queue, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating queue %s: %w", queue.Name, err)
		}
	}
	workqueue.ParallelizeUntil(ctx, creators, w.gangs, func(g int) {
		name := fmt.Sprintf("gang-%05d", g)
		if c.gangs {
			group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: volcano.PodGroupSpec{MinMember: int32(w.size)}}
			if c.queues > 0 {
				group.Spec.Queue = queueName(g % c.queues)
			}
			if _, err := groups.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
				keep(err)
				return
			}
		}
		for i := range w.size {
			if _, err := kube.CoreV1().Pods(namespace).Create(ctx, pod(name, i, c.gangs), metav1.CreateOptions{}); err != nil {
				keep(err)
				return
			}
		}
	})
	select {
	case err := <-errs:
		return fmt.Errorf("creating the pods: %w", err)
	default:
		return ctx.Err()
	}
}

func queueName(i int) string { return fmt.Sprintf("team-%02d", i) }

func pod(group string, i int, gang bool) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%05d", group, i), Labels: map[string]string{groupLabel: group}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "work", Image: "registry.k8s.io/pause:3.10",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			}},
		}}},
	}
	if gang {
		p.Spec.SchedulerName = "volcano"
		p.Annotations = map[string]string{model.GroupNameAnnotation: group}
	}
	return p
}

// bind is one pod that got its node.
type bind struct {
	group string
	at    time.Time
}

// watch reports every bind as the API server tells of it.
func watch(ctx context.Context, cluster *localcluster.Cluster) (<-chan bind, func(), error) {
	// Protobuf, which the schedulers use too: the API server encodes each change once, and the watcher stays light.
	config := cluster.RESTConfig()
	config.ContentType = runtime.ContentTypeProtobuf
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactory(kube, 0)
	binds := make(chan bind, 1024)
	informer := factory.Core().V1().Pods().Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		p := after.(*corev1.Pod)
		if before.(*corev1.Pod).Spec.NodeName == "" && p.Spec.NodeName != "" {
			select {
			case binds <- bind{group: p.Labels[groupLabel], at: time.Now()}:
			case <-ctx.Done():
			}
		}
	}})
	if err != nil {
		cancel()
		return nil, nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return binds, cancel, nil
}

// await collects the binds until all pods have one.
func await(ctx context.Context, binds <-chan bind, want int) ([]bind, error) {
	var all []bind
	for len(all) < want {
		select {
		case b := <-binds:
			all = append(all, b)
		case <-time.After(patience):
			return nil, fmt.Errorf("nothing was bound for %s after %d of %d pods", patience, len(all), want)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return all, nil
}

// awaitEvents waits until there is an event for each pod, so that a scheduler's CPU time includes writing them. A scheduler
// may drop events; none for a while ends the wait.
func awaitEvents(ctx context.Context, cluster *localcluster.Cluster, want int) (time.Duration, error) {
	kube, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		return 0, err
	}
	const pause, quiet = 100 * time.Millisecond, 3 * time.Second
	start := time.Now()
	last, seen := start, 0
	for {
		// One event and the number of the others: cheap, however many there are.
		list, err := kube.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return 0, fmt.Errorf("counting events: %w", err)
		}
		if n := len(list.Items) + int(ptr.Deref(list.RemainingItemCount, 0)); n > seen {
			last, seen = time.Now(), n
		}
		if seen >= want || time.Since(last) > quiet {
			return last.Sub(start), nil
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func summarise(all []bind, start time.Time) result {
	slices.SortFunc(all, func(a, b bind) int { return a.at.Compare(b.at) })
	first, last := all[0].at, all[len(all)-1].at
	type span struct{ from, to time.Time }
	gangs := map[string]span{}
	for _, b := range all {
		s, ok := gangs[b.group]
		if !ok {
			s.from = b.at
		}
		s.to = b.at
		gangs[b.group] = s
	}
	var latencies, spreads []time.Duration
	for _, s := range gangs {
		latencies = append(latencies, s.to.Sub(first))
		spreads = append(spreads, s.to.Sub(s.from))
	}
	return result{
		rate:   float64(len(all)) / max(last.Sub(first).Seconds(), 1e-3),
		first:  first.Sub(start),
		p50:    quantile(latencies, 0.5),
		p99:    quantile(latencies, 0.99),
		spread: quantile(spreads, 0.5),
	}
}

// quantile returns the value below which the share q of the values lies.
func quantile[T cmp.Ordered](values []T, q float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
