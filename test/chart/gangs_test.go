// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	helmkube "helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
)

const (
	gangs   = 100
	members = 3
)

// TestGangsRunThroughUpgradeAndRollback installs the chart beside the cluster's own scheduler, with a real process for each pod, and lets gangs come while
// all these processes are replaced twice. The nodes have room for the gangs and nearly nothing else.
func TestGangsRunThroughUpgradeAndRollback(t *testing.T) {
	t.Parallel()
	r := start(t, localcluster.Options{Nodes: 19, Shapes: []string{"cpu=16,memory=64Gi"}})
	theClustersOwn(t, r)
	const with = "resources: {requests: {cpu: 10m}}"
	one := r.install(t, with)
	s := follow(t, r)
	s.rolledOut(t, "--v=2")
	r.green(t)

	created := make(chan error, 1)
	again := make(chan struct{})
	uids := map[string]types.UID{}
	go func() { created <- r.createGangs(t.Context(), uids, again) }()
	r.upgradeAndWait(t, with+"\nverbosity: 3\nschedulerConfig: {parallelism: 8}\nvolcanoConf: \"actions: \\\"enqueue, allocate, backfill\\\"\\ntiers:\\n- plugins: [{name: priority}, {name: gang}, {name: proportion}]\\n\"")
	s.rolledOut(t, "--v=3")
	for _, one := range s.all() {
		if !slices.Contains(one.args, "--volcano-conf=/etc/volcano/volcano-scheduler.conf") {
			t.Errorf("pod %s runs with %q, want its volcano-scheduler.conf", one.pod, one.args)
		}
	}
	close(again)
	r.rollback(t, one.Version)
	s.rolledOut(t, "--v=2")
	if err := <-created; err != nil {
		t.Fatal(err)
	}
	r.allRun(t, uids)
	r.green(t)
}

// theClustersOwn runs a scheduler that knows nothing of gangs, for pods that name no scheduler: those of the Deployment.
func theClustersOwn(t *testing.T, r *controlPlane) {
	t.Helper()
	const config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	p, err := schedulerprocess.Start(schedulerprocess.Options{
		Binary: program(t, schedulerprocess.BinaryVariable), Kubeconfig: r.Kubeconfig, Config: []byte(config), Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// upgradeAndWait is helm upgrade --wait: the Deployment's pods are replaced when it returns.
func (r *controlPlane) upgradeAndWait(t *testing.T, with string) {
	t.Helper()
	upgrade := action.NewUpgrade(r.helm(t))
	upgrade.Namespace, upgrade.Timeout, upgrade.WaitStrategy = namespace, timeout, helmkube.StatusWatcherStrategy
	if _, err := upgrade.Run(release, load(t), values(t, with)); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition returns "", for at most the time that everything has here.
func eventually(t *testing.T, condition func(context.Context) string) {
	t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		// Not with the time that is left: what is wrong is to be told, and not that it is over.
		last = condition(t.Context())
		return last == "", nil
	})
	if err != nil {
		t.Fatal(last)
	}
}

// rolledOut waits until two schedulers run, with an argument, and one of them leads.
func (s *schedulers) rolledOut(t *testing.T, arg string) {
	t.Helper()
	eventually(t, func(context.Context) string {
		all := s.all()
		if len(all) != 2 {
			return fmt.Sprintf("%d schedulers run, want 2", len(all))
		}
		leaders := 0
		for _, one := range all {
			select {
			case <-one.Exited():
				return fmt.Sprintf("the scheduler of pod %s has ended", one.pod)
			default:
			}
			if !slices.Contains(one.args, arg) {
				return fmt.Sprintf("pod %s runs with %q, want %s", one.pod, one.args, arg)
			}
			log, err := os.ReadFile(one.LogFile)
			if err != nil {
				return err.Error()
			}
			if strings.Contains(strings.ToLower(string(log)), "successfully acquired lease") {
				leaders++
			}
		}
		if leaders != 1 {
			return fmt.Sprintf("%d of two schedulers lead, want 1", leaders)
		}
		return ""
	})
}

// green has kubectl caldera ask who leads.
func (r *controlPlane) green(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		cmd := exec.CommandContext(ctx, program(t, "CALDERA_KUBECTL_CALDERA"), "status")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+r.Kubeconfig)
		output, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Sprintf("kubectl caldera status: %v: %s", err, output)
		}
		lease, err := r.kube.CoordinationV1().Leases(namespace).Get(ctx, "caldera-scheduler", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, want := range []string{*lease.Spec.HolderIdentity + ",", "Schedules   volcano\n", "Nodes       19\n", "Waiting     0 jobs\n", "Left out    no queue\n"} {
			if !strings.Contains(string(output), want) {
				return fmt.Sprintf("kubectl caldera status says\n%s\nwant %q in it", output, want)
			}
		}
		return ""
	})
}

// createGangs creates gangs one after the other, ten a second, so that they come all through what happens meanwhile; the second half of them from another
// moment on.
func (r *controlPlane) createGangs(ctx context.Context, uids map[string]types.UID, again <-chan struct{}) error {
	groups, err := volcanoclient.NewForConfig(r.RESTConfig())
	if err != nil {
		return err
	}
	for i := range gangs {
		next := time.After(100 * time.Millisecond)
		if i == gangs/2 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-again:
			}
		}
		name := fmt.Sprintf("gang-%03d", i)
		group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: volcano.PodGroupSpec{MinMember: members}}
		if _, err := groups.SchedulingV1beta1().PodGroups("default").Create(ctx, group, metav1.CreateOptions{}); err != nil {
			return err
		}
		for k := range members {
			created, err := r.kube.CoreV1().Pods("default").Create(ctx, member(name, k), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			uids[created.Name] = created.UID
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next:
		}
	}
	return nil
}

// member is a pod of a gang.
func member(gang string, number int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", gang, number), Labels: map[string]string{"gang": gang},
			Annotations: map[string]string{volcano.KubeGroupNameAnnotationKey: gang},
		},
		Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
			Name: "work", Image: "work",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		}}},
	}
}

// allRun waits until each pod that was created runs, and checks that nobody has more than there is.
func (r *controlPlane) allRun(t *testing.T, uids map[string]types.UID) {
	t.Helper()
	var pods *corev1.PodList
	eventually(t, func(ctx context.Context) string {
		var err error
		if pods, err = r.kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "gang"}); err != nil {
			return err.Error()
		}
		running := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running != gangs*members {
			return fmt.Sprintf("%d of %d pods run, want %d", running, len(pods.Items), gangs*members)
		}
		return ""
	})
	held := map[string]int64{}
	for i := range pods.Items {
		p := &pods.Items[i]
		if uids[p.Name] != p.UID {
			t.Errorf("pod %s is not the one that was created", p.Name)
		}
		held[p.Spec.NodeName] += p.Spec.Containers[0].Resources.Requests.Cpu().Value()
	}
	for node, cpus := range held {
		if cpus > 16 {
			t.Errorf("the gangs' pods on node %s hold %d CPUs of 16", node, cpus)
		}
	}
}
