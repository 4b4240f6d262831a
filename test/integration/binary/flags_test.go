// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestTheFlagsOfVolcanosDeployment: with a volcano-scheduler.conf the program takes the cluster from --kubeconfig and the limit of requests from
// flags, as Volcano's does, and logs JSON if it is told to.
func TestTheFlagsOfVolcanosDeployment(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=8,memory=32Gi"}})
	binary, err := schedulerprocess.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "volcano-scheduler.conf")
	if err := os.WriteFile(file, []byte(packing), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--volcano-conf="+file, "--kubeconfig="+e.Kubeconfig, "--kube-api-qps=2000", "--kube-api-burst=2000",
		"--leader-elect=false", "--secure-port=0", "--logging-format=json")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A test that fails before it ends the program leaves none behind.
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	gang := env.Gang{Name: "train", Min: 2, Size: 2, CPU: "1"}
	e.Create(t, gang)
	env.Eventually(t, time.Minute, e.AllBound(t, gang.Name, gang.Size))
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	// It ends with an error: the leader's work was stopped.
	_ = cmd.Wait()
	for line := range strings.Lines(log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("the log has the line %q, want JSON", line)
		}
	}
	if log.Len() == 0 {
		t.Error("nothing was logged")
	}
}

// TestUpstreamsOwnGangSchedulingIsRefusedAtTheStart: the API server has the gate on, this process must not.
func TestUpstreamsOwnGangSchedulingIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	out, err := run(t, "--feature-gates=GenericWorkload=true")
	if err == nil {
		t.Fatal("the scheduler started")
	}
	if want := "the feature gate GenericWorkload is on in this process"; !strings.Contains(out, want) {
		t.Errorf("it does not say %q, but\n%s", want, out)
	}
}

// TestAConfigurationWithoutOurPluginsIsKubeSchedulers: the program is then kube-scheduler, whatever flags of ours it has.
func TestAConfigurationWithoutOurPluginsIsKubeSchedulers(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=8,memory=32Gi"}})
	args, err := schedulerprocess.ViewsArgs()
	if err != nil {
		t.Fatal(err)
	}
	start(t, schedulerprocess.Options{
		Kubeconfig: e.Kubeconfig, Args: append(args, "--volcano-metrics"),
		Config: []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: volcano}]\n"),
	})
	gang := env.Gang{Name: "apart", Min: 2, Size: 9, CPU: "1"}
	e.Create(t, gang)
	// It knows of no gangs.
	env.Eventually(t, time.Minute, e.AllBound(t, gang.Name, 8))
}
