// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/status"
	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// Where the static pod finds its files on a node.
const (
	schedulerConf = "/etc/kubernetes/scheduler.conf"
	calderaDir    = "/etc/caldera"
)

// TestTheOnlySchedulerComesBackByItself runs the shipped static pod on two nodes, as the user that the cluster has for its scheduler. Both are killed at once
// while pods come. Their kubelets start them again, which needs nothing of the API and no scheduler.
func TestTheOnlySchedulerComesBackByItself(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=8,memory=32Gi"}})
	apply(t, e, "deploy/namespace.yaml", "rbac/roles.yaml", "visibility/apiservice.yaml", "visibility/roles.yaml", "static-pod/bindings.yaml")
	pod := staticPod(t)
	nodes := []*supervisor{newSupervisor(t, e, pod), newSupervisor(t, e, pod)}
	all := func(gang, single string) {
		t.Helper()
		env.Eventually(t, time.Minute, e.AllBound(t, gang, 4))
		env.Eventually(t, time.Minute, func() string {
			p, err := e.Pods.Pods(env.Namespace).Get(single)
			if err != nil || p.Spec.NodeName == "" {
				return "pod " + single + " has no node"
			}
			return ""
		})
	}
	create := func(gang, single string) {
		t.Helper()
		e.Create(t, env.Gang{Name: gang, Min: 4, Size: 4, CPU: "1"})
		ordinary := env.Pod(single, "1")
		ordinary.Spec.SchedulerName = corev1.DefaultSchedulerName
		e.CreatePods(t, ordinary)
	}
	create("before", "single-before")
	all("before", "single-before")

	for _, k := range nodes {
		k.kill(t)
	}
	create("after", "single-after")
	all("after", "single-after")
	out, _, err := command(t.Context(), status.New(), "--kubeconfig", e.Kubeconfig)
	if err != nil || !strings.Contains(out, "volcano, default-scheduler") && !strings.Contains(out, "default-scheduler, volcano") {
		t.Errorf("status is %v\n%s", err, out)
	}
	for _, k := range nodes {
		k.stop()
		for _, file := range k.logs {
			log, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(log)) {
				if strings.Contains(strings.ToLower(line), "forbidden") {
					t.Errorf("the shipped rules forbid something: %s", line)
				}
			}
		}
		if len(k.logs) < 2 {
			t.Errorf("the scheduler was started %d times, want again after it was killed", len(k.logs))
		}
	}
}

// staticPod reads the shipped static pod, and checks that a kubelet can run it while there is nothing else.
func staticPod(t *testing.T) *corev1.Pod {
	t.Helper()
	data, err := manifests.All.ReadFile("static-pod/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		t.Fatal(err)
	}
	if s := &pod.Spec; s.ServiceAccountName != "" || !s.HostNetwork || s.RestartPolicy != "" || len(s.Containers) != 1 {
		t.Errorf("no kubelet runs this by itself, and again after each end: %+v", s)
	}
	mounted := map[string]bool{}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		mounted[m.MountPath] = true
	}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath == nil || !mounted[v.HostPath.Path] {
			t.Errorf("volume %s is not of the node, or elsewhere in the container", v.Name)
		}
	}
	if !mounted[schedulerConf] || !mounted[calderaDir] {
		t.Errorf("mounts are %v", mounted)
	}
	return pod
}

// supervisor does what a kubelet does with a static pod: it runs the program, and starts it again whenever it has ended.
type supervisor struct {
	binary  string
	args    []string
	stop    func()
	stopped chan struct{}

	// logs are those of each start; they are whole once it has stopped.
	logs []string
	mu   sync.Mutex // guards what follows
	now  *schedulerprocess.Process
}

// newSupervisor has the files of a node, and starts.
func newSupervisor(t *testing.T, e *env.Env, pod *corev1.Pod) *supervisor {
	t.Helper()
	binary, err := schedulerprocess.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	etc := t.TempDir()
	files := strings.NewReplacer(schedulerConf, filepath.Join(etc, "scheduler.conf"), calderaDir, etc)
	writeNode(t, e, etc, files)
	k := &supervisor{binary: binary, stopped: make(chan struct{})}
	for _, arg := range pod.Spec.Containers[0].Args {
		k.args = append(k.args, files.Replace(arg))
	}
	// Both nodes are this machine.
	for _, flag := range []string{"--secure-port", "--visibility-port"} {
		port, err := schedulerprocess.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		k.args = append(k.args, flag+"="+strconv.Itoa(port))
	}
	k.args = append(k.args, "--cert-dir="+etc)
	ctx, cancel := context.WithCancel(t.Context())
	k.stop = func() { cancel(); <-k.stopped }
	dir := t.TempDir()
	go k.run(ctx, t, dir)
	t.Cleanup(k.stop)
	return k
}

// writeNode writes what docs/only-scheduler.md has on a node: the kubeconfig of the cluster's scheduler, and the shipped configuration with its name.
func writeNode(t *testing.T, e *env.Env, etc string, files *strings.Replacer) {
	t.Helper()
	kubeconfig, err := clientcmd.LoadFromFile(e.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range kubeconfig.AuthInfos {
		user.Impersonate = "system:kube-scheduler"
	}
	if err := clientcmd.WriteToFile(*kubeconfig, filepath.Join(etc, "scheduler.conf")); err != nil {
		t.Fatal(err)
	}
	config, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config = bytes.Replace(config, []byte("\nclientConnection:\n"), []byte("\nclientConnection:\n  kubeconfig: "+schedulerConf+"\n"), 1)
	if err := os.WriteFile(filepath.Join(etc, "scheduler-config.yaml"), []byte(files.Replace(string(config))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs the program again and again until the context ends.
func (k *supervisor) run(ctx context.Context, t *testing.T, dir string) {
	defer close(k.stopped)
	for ctx.Err() == nil {
		start := filepath.Join(dir, strconv.Itoa(len(k.logs)))
		if err := os.Mkdir(start, 0o700); err != nil {
			t.Error(err)
			return
		}
		p, err := schedulerprocess.Start(schedulerprocess.Options{Binary: k.binary, Args: k.args, Dir: start})
		if err != nil {
			t.Error(err)
			return
		}
		k.logs = append(k.logs, p.LogFile)
		k.mu.Lock()
		k.now = p
		k.mu.Unlock()
		select {
		case <-p.Exited():
		case <-ctx.Done():
			if _, err := p.Stop(); err != nil {
				t.Error(err)
			}
		}
	}
}

// kill ends the program as a crash would.
func (k *supervisor) kill(t *testing.T) {
	t.Helper()
	k.mu.Lock()
	p := k.now
	k.mu.Unlock()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}
