// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

// childMode is set for the copies of this test binary that play the program.
const childMode = "LOCALCLUSTER_TEST_CHILD"

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		os.Exit(child(mode))
	}
	os.Exit(m.Run())
}

// child behaves as `localcluster up` does, well or badly.
func child(mode string) int {
	fmt.Fprintln(os.Stderr, "progress of", mode)
	switch mode {
	case "fails":
		fmt.Fprintln(os.Stderr, "Error: it went wrong")
		return 1
	case "hangs":
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "starts another and hangs":
		return parent()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a connection to it tells whether this process lives
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir := os.Getenv("LOCALCLUSTER_TEST_DIR")
	ready := localcluster.Ready{Kubeconfig: filepath.Join(dir, "kubeconfig"), Dir: dir, Server: listener.Addr().String(), Version: "v1.37.1"}
	if err := errors.Join(
		os.WriteFile(ready.Kubeconfig, []byte(kubeconfig), 0o600),
		os.WriteFile(filepath.Join(dir, "args"), []byte(strings.Join(os.Args[1:], "\n")), 0o600),
		json.NewEncoder(os.Stdout).Encode(ready),
	); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// parent starts a cluster, prints its address and never ends by itself.
func parent() int {
	err := os.Setenv(childMode, "serves")
	if err == nil {
		var c *localcluster.Cluster
		if c, err = localcluster.Start(context.Background(), localcluster.Options{Binary: os.Args[0]}); err == nil {
			fmt.Fprintln(os.Stdout, c.Server)
			select {}
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// as makes the next start run this binary in the given mode; it returns the directory of the child.
func as(t *testing.T, mode string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv(childMode, mode)
	t.Setenv("LOCALCLUSTER_TEST_DIR", dir)
	return dir
}

func TestStartPassesOptionsAsFlags(t *testing.T) {
	dir := as(t, "serves")
	c, err := localcluster.Start(t.Context(), localcluster.Options{
		Binary: os.Args[0], Nodes: 5, Shapes: []string{"cpu=1,memory=1Gi", "cpu=2,memory=2Gi"}, NodesFile: "n.yaml",
		CRDDirs: []string{"a", "b"}, Dir: dir, Port: 1234, NoKubelets: true, FeatureGates: []string{"A=true", "B=false"},
		RuntimeConfig: []string{"api/all=true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Version != "v1.37.1" || c.RESTConfig().Host != "https://127.0.0.1:1" || c.RESTConfig().QPS < 1000 {
		t.Errorf("cluster is %+v at %s with %v requests/s", c.Ready, c.RESTConfig().Host, c.RESTConfig().QPS)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "args"))
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Split(string(content), "\n")
	for _, want := range []string{
		"up", "--output=json", "--exit-with-stdin", "--nodes=5", "--port=1234", "--kubelets=false", "--controllers=true",
		"--default-crds=true", "--node=cpu=1,memory=1Gi", "--node=cpu=2,memory=2Gi", "--crds=a", "--crds=b",
		"--nodes-file=n.yaml", "--dir=" + dir, "--feature-gates=A=true,B=false", "--runtime-config=api/all=true",
	} {
		if !slices.Contains(args, want) {
			t.Errorf("flag %s is missing in %q", want, args)
		}
	}
}

func TestStartErrorCarriesTheOutput(t *testing.T) {
	as(t, "fails")
	_, err := localcluster.Start(t.Context(), localcluster.Options{Binary: os.Args[0]})
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), "it went wrong") {
		t.Errorf("error is %v, want the exit status and the output", err)
	}
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	as(t, "hangs")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := localcluster.Start(ctx, localcluster.Options{Binary: os.Args[0]})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want DeadlineExceeded", err)
	}
}

func TestClusterSurvivesTheContextOfItsStart(t *testing.T) {
	as(t, "serves")
	ctx, cancel := context.WithCancel(t.Context())
	c, err := localcluster.Start(ctx, localcluster.Options{Binary: os.Args[0]})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-c.Exited():
		t.Error("ended with the context")
	default:
	}
	if err := errors.Join(c.Stop(), c.Stop()); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
	<-c.Exited()
}

func TestClusterEndsWithAKilledParent(t *testing.T) {
	as(t, "starts another and hangs")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimSpace(address))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the other end goes away
	if err := errors.Join(conn.SetReadDeadline(time.Now().Add(time.Minute)), cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the cluster outlived its parent")
	}
	_ = cmd.Wait() // killed
}

func TestBuildHonoursThePrebuiltBinary(t *testing.T) {
	t.Setenv(localcluster.BinaryVariable, os.Args[0])
	binary, err := localcluster.Build(t.Context())
	if want, _ := filepath.Abs(os.Args[0]); err != nil || binary != want {
		t.Errorf("Build() = %q, %v, want %q", binary, err, want)
	}
	t.Setenv(localcluster.BinaryVariable, "no-such-file")
	if _, err := localcluster.Build(t.Context()); err == nil || !strings.Contains(err.Error(), localcluster.BinaryVariable) {
		t.Errorf("error is %v, want it to name %s", err, localcluster.BinaryVariable)
	}
}

// Different flags would make every `make` and every test link the binary again.
func TestLDFlagsAreThoseOfTheMakefile(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "make", "-C", "../..", "--dry-run", "_output/bin/localcluster").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	version, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "'" + localcluster.LDFlags(strings.TrimSpace(string(version))) + "'"; !strings.Contains(string(output), want) {
		t.Errorf("the Makefile does not pass\n%s\nbut\n%s", want, output)
	}
}
