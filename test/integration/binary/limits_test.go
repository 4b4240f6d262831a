// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package binary_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// limited runs a program as a container runtime does by the Deployment's security context: as another user, without capabilities and any way to get
// some, and with a root that cannot be written. The first argument is the program.
const limited = `#!/bin/sh
exec unshare --mount --propagation=private sh -c 'mount -o remount,bind,ro / && exec setpriv --reuid=%[1]d --regid=%[1]d --clear-groups \
	--inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs "$0" "$@"' %[2]s "$@"
`

// TestTheSchedulerNeedsNoRights runs it with the arguments of the shipped Deployment and no more rights than that gives it.
func TestTheSchedulerNeedsNoRights(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can take a root filesystem and capabilities from a process")
	}
	if out, err := exec.Command("unshare", "--mount", "--propagation=private", "sh", "-c", "mount -o remount,bind,ro / && setpriv --bounding-set=-all true").CombinedOutput(); err != nil {
		t.Skipf("this machine has no mounts of a process's own: %v: %s", err, out)
	}
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=8,memory=32Gi"}})
	apply(t, e, "deploy/namespace.yaml")
	deployment := shippedDeployment(t)
	user := *deployment.Spec.Template.Spec.SecurityContext.RunAsUser
	dir := visibleDir(t)
	program := programIn(t, dir, user)
	writeConfiguration(t, e, dir)
	args := argumentsOf(t, deployment, dir)
	p, err := schedulerprocess.Start(schedulerprocess.Options{Binary: program, Args: args, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Kill() }()
	e.Create(t, env.Gang{Name: "train", Min: 4, Size: 4, CPU: "1"})
	env.Eventually(t, time.Minute, func() string {
		select {
		case <-p.Exited():
			log, _ := os.ReadFile(p.LogFile)
			t.Fatalf("the scheduler has ended:\n%s", log)
		default:
		}
		return e.AllBound(t, "train", 4)()
	})
	hasNoRights(t, p.PID(), user)
	if _, err := p.Stop(); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(p.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "read-only file system") || strings.Contains(line, "permission denied") || strings.Contains(line, "operation not permitted") {
			t.Errorf("the scheduler misses a right: %s", line)
		}
	}
}

// shippedDeployment is that of manifests/deploy, whose limits are those that are tested.
func shippedDeployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	data, err := manifests.All.ReadFile("deploy/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		d := &appsv1.Deployment{}
		if err := yaml.Unmarshal(document, d); err != nil || d.Kind != "Deployment" {
			continue
		}
		pod, container := d.Spec.Template.Spec.SecurityContext, d.Spec.Template.Spec.Containers[0].SecurityContext
		if pod == nil || pod.RunAsUser == nil || *pod.RunAsUser == 0 || container == nil || container.ReadOnlyRootFilesystem == nil || !*container.ReadOnlyRootFilesystem ||
			container.Capabilities == nil || fmt.Sprint(container.Capabilities.Drop) != "[ALL]" || len(container.Capabilities.Add) > 0 ||
			container.AllowPrivilegeEscalation == nil || *container.AllowPrivilegeEscalation {
			t.Fatalf("the Deployment's limits are not those that are tested here: %+v, %+v", pod, container)
		}
		return d
	}
	t.Fatal("manifests/deploy/deployment.yaml has no Deployment")
	return nil
}

// visibleDir is a directory that any user may look into.
func visibleDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil { //nolint:gosec // That is what it is for.
			t.Fatal(err)
		}
	}
	return dir
}

// programIn copies the scheduler to where its user may start it, and returns what starts it.
func programIn(t *testing.T, dir string, user int64) string {
	t.Helper()
	built, err := schedulerprocess.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	binary, script := filepath.Join(dir, "kube-scheduler"), filepath.Join(dir, "limited")
	for file, content := range map[string][]byte{binary: data, script: fmt.Appendf(nil, limited, user, binary)} {
		if err := os.WriteFile(file, content, 0o755); err != nil { //nolint:gosec // Another user starts it.
			t.Fatal(err)
		}
	}
	return script
}

// writeConfiguration writes the shipped configuration of the Deployment for this cluster, and a kubeconfig that needs no other files.
func writeConfiguration(t *testing.T, e *env.Env, dir string) {
	t.Helper()
	kubeconfig, err := clientcmd.LoadFromFile(e.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := clientcmdapi.FlattenConfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	access, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config, err := manifests.All.ReadFile("config/volcano-only.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "kubeconfig")
	config = bytes.Replace(config, []byte("\nclientConnection:\n"), []byte("\nclientConnection:\n  kubeconfig: "+file+"\n"), 1)
	for name, content := range map[string][]byte{file: access, filepath.Join(dir, "volcano-only.yaml"): config} {
		if err := os.WriteFile(name, content, 0o644); err != nil { //nolint:gosec // Another user reads it.
			t.Fatal(err)
		}
	}
}

// argumentsOf are those of the Deployment, with files in a directory and ports that are free.
func argumentsOf(t *testing.T, d *appsv1.Deployment, dir string) []string {
	t.Helper()
	var args []string
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		args = append(args, strings.ReplaceAll(arg, calderaDir, dir))
	}
	for _, flag := range []string{"--secure-port", "--visibility-port"} {
		port, err := schedulerprocess.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, flag+"="+strconv.Itoa(port))
	}
	return args
}

// hasNoRights fails if a process has more rights than the Deployment gives it: else the test would say nothing.
func hasNoRights(t *testing.T, pid int, user int64) {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	status := map[string]string{}
	for line := range strings.Lines(read("status")) {
		key, value, _ := strings.Cut(line, ":")
		status[key] = strings.Join(strings.Fields(value), " ")
	}
	id := strconv.FormatInt(user, 10)
	all := strings.Join([]string{id, id, id, id}, " ")
	const none = "0000000000000000"
	for key, want := range map[string]string{
		"Name": "kube-scheduler", "Uid": all, "Gid": all, "Groups": "", "NoNewPrivs": "1", "CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
	} {
		if status[key] != want {
			t.Errorf("%s of the process is %q, want %q", key, status[key], want)
		}
	}
	var writable bool
	for line := range strings.Lines(read("mountinfo")) {
		if f := strings.Fields(line); len(f) > 5 && f[4] == "/" {
			writable = !strings.HasPrefix(f[5], "ro")
		}
	}
	if writable {
		t.Error("the root of the process can be written")
	}
}
