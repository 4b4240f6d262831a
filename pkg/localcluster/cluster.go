// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// stopTimeout is how long Stop waits before it kills; a clean shutdown takes about a second.
	stopTimeout = 30 * time.Second
	// tailBytes is how much of the child's stderr goes into an error.
	tailBytes = 8 << 10
)

// ControlPlaneVariable is the environment variable that names the default of Options.ControlPlane.
const ControlPlaneVariable = "CALDERA_CONTROL_PLANE"

// Options mirror the flags of `localcluster up`; the zero value is a cluster without nodes.
type Options struct {
	// Binary is the program to run; by default the one Build returns.
	Binary string
	// Nodes is shared by the shapes that give no count.
	Nodes int
	// Shapes are --node values, for example "count=10,cpu=32,memory=256Gi,nvidia.com/gpu=8,label:zone=a".
	Shapes []string
	// NodesFile is a YAML list of shapes.
	NodesFile string
	// CRDDirs are installed besides the project's own CRDs.
	CRDDirs []string
	// NoDefaultCRDs leaves the project's own CRDs out.
	NoDefaultCRDs bool
	// Dir keeps the data for a later start; by default it is temporary.
	Dir string
	// Port of the API server; 0 is a free one.
	Port int
	// NoKubelets leaves bound pods alone; nodes then are plain objects.
	NoKubelets bool
	// NoControllers leaves out kube-controller-manager.
	NoControllers bool
	// FeatureGates and RuntimeConfig are those of the control plane.
	FeatureGates  []string
	RuntimeConfig []string
	// EmulatedVersion is the minor version of Kubernetes as which the control plane acts, for example 1.34; by default its own.
	EmulatedVersion string
	// ControlPlane is a folder with kube-apiserver and kube-controller-manager of another release of Kubernetes, which run instead; by default that of the
	// environment variable ControlPlaneVariable, if it names one.
	ControlPlane string
	// Progress receives what the child writes on stderr, if set.
	Progress io.Writer
}

func (o Options) args() []string {
	args := []string{
		"up", "--output=json", "--exit-with-stdin",
		"--nodes=" + strconv.Itoa(o.Nodes),
		"--port=" + strconv.Itoa(o.Port),
		"--kubelets=" + strconv.FormatBool(!o.NoKubelets),
		"--controllers=" + strconv.FormatBool(!o.NoControllers),
		"--default-crds=" + strconv.FormatBool(!o.NoDefaultCRDs),
	}
	for _, shape := range o.Shapes {
		args = append(args, "--node="+shape)
	}
	for _, dir := range o.CRDDirs {
		args = append(args, "--crds="+dir)
	}
	for _, optional := range []struct{ flag, value string }{
		{"--nodes-file=", o.NodesFile},
		{"--dir=", o.Dir},
		{"--feature-gates=", strings.Join(o.FeatureGates, ",")},
		{"--runtime-config=", strings.Join(o.RuntimeConfig, ",")},
		{"--emulated-version=", o.EmulatedVersion},
		{"--control-plane=", cmp.Or(o.ControlPlane, os.Getenv(ControlPlaneVariable))},
	} {
		if optional.value != "" {
			args = append(args, optional.flag+optional.value)
		}
	}
	return args
}

// Cluster is a running control plane.
type Cluster struct {
	Ready

	config    *rest.Config
	cmd       *exec.Cmd
	stdin     io.Closer
	output    *tail
	temporary bool
	stopOnce  sync.Once
	exited    chan struct{}
	exitErr   error // valid once exited is closed
}

// Start runs a control plane and returns when it serves. ctx bounds the start only; the cluster runs until Stop or until
// this process ends, however it ends: the child stops when its stdin is closed.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Binary == "" {
		binary, err := Build(ctx)
		if err != nil {
			return nil, err
		}
		o.Binary = binary
	}
	c, stdout, err := launch(o)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Binary, err)
	}
	if err := c.awaitReady(ctx, stdout); err != nil {
		return nil, errors.Join(fmt.Errorf("starting local cluster: %w", err), c.Stop())
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading kubeconfig: %w", err), c.Stop())
	}
	config.QPS, config.Burst = 10_000, 20_000
	config.DisableCompression = true // the loopback device is faster than gzip
	c.config = config
	return c, nil
}

func launch(o Options) (*Cluster, io.Reader, error) {
	c := &Cluster{
		cmd:       exec.Command(o.Binary, o.args()...),
		output:    &tail{next: o.Progress},
		temporary: o.Dir == "",
		exited:    make(chan struct{}),
	}
	c.cmd.Stderr = c.output
	detach(c.cmd)
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	c.stdin = stdin
	// Not StdoutPipe: Wait would close it while the line is still being read.
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	c.cmd.Stdout = writer
	err = c.cmd.Start()
	writer.Close() //nolint:errcheck // the child holds its own copy
	if err != nil {
		reader.Close() //nolint:errcheck // nothing was read
		return nil, nil, err
	}
	go func() {
		c.exitErr = c.cmd.Wait()
		close(c.exited)
	}()
	return c, reader, nil
}

// awaitReady reads the line the child prints when it serves.
func (c *Cluster) awaitReady(ctx context.Context, stdout io.Reader) error {
	type result struct {
		ready Ready
		err   error
	}
	got := make(chan result, 1)
	go func() {
		var r result
		reader := bufio.NewReader(stdout)
		line, err := reader.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &r.ready)
		}
		r.err = err
		got <- r
		_, _ = io.Copy(io.Discard, reader) // until the child ends
	}()
	select {
	case r := <-got:
		if r.err == nil {
			c.Ready = r.ready
			return nil
		}
		<-c.exited // stdout ends when the child does
		if errors.Is(r.err, io.EOF) {
			r.err = errors.New("it ended before it was ready")
		}
		return fmt.Errorf("%w\n%s", errors.Join(r.err, c.exitErr), c.output)
	case <-ctx.Done():
		return fmt.Errorf("%w\n%s", context.Cause(ctx), c.output)
	}
}

// RESTConfig is the administrator's configuration, a copy with high client-side limits.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// PID is the number of the process that is the whole control plane, etcd included.
func (c *Cluster) PID() int { return c.cmd.Process.Pid }

// Exited is closed when the process has ended, by Stop or by a fault.
func (c *Cluster) Exited() <-chan struct{} { return c.exited }

// Stop shuts the cluster down and waits for it. A temporary directory is gone afterwards. More calls do nothing.
func (c *Cluster) Stop() error {
	var err error
	c.stopOnce.Do(func() { err = c.stop() })
	return err
}

func (c *Cluster) stop() error {
	c.stdin.Close() //nolint:errcheck // the child stops at the end of its input; an error means it has gone
	select {
	case <-c.exited:
	case <-time.After(stopTimeout):
		return c.kill()
	}
	if c.exitErr != nil && c.Kubeconfig != "" { // a failed start has been reported already
		return fmt.Errorf("stopping local cluster: %w\n%s", c.exitErr, c.output)
	}
	return nil
}

func (c *Cluster) kill() error {
	err := fmt.Errorf("stopping local cluster: killed after %s\n%s", stopTimeout, c.output)
	c.cmd.Process.Kill() //nolint:errcheck // it has just ended by itself, or the kill works
	<-c.exited
	if c.temporary && c.Dir != "" {
		err = errors.Join(err, os.RemoveAll(c.Dir))
	}
	return err
}

// tail passes writes on and remembers the last of them.
type tail struct {
	next io.Writer

	mu   sync.Mutex // guards last
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-tailBytes):]
	t.mu.Unlock()
	if t.next != nil {
		return t.next.Write(p)
	}
	return len(p), nil
}

// String is the remembered output.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
}
