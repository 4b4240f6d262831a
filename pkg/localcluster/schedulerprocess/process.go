// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedulerprocess runs a scheduler binary against a local cluster: for the demo, for comparisons, and for
// tests that need a scheduler they can kill.
package schedulerprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"
)

// stopTimeout is how long Stop waits before it kills.
const stopTimeout = 15 * time.Second

// BinaryVariable is the environment variable that names a prebuilt scheduler; Build then builds nothing.
const BinaryVariable = "CALDERA_KUBE_SCHEDULER"

// Build builds the module's cmd/kube-scheduler into a directory and returns the binary.
func Build(ctx context.Context, dir string) (string, error) {
	if binary := os.Getenv(BinaryVariable); binary != "" {
		return filepath.Abs(binary)
	}
	binary := filepath.Join(dir, "kube-scheduler")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/caldera-scheduler/caldera/cmd/kube-scheduler")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the scheduler: %w\n%s", err, output)
	}
	return binary, nil
}

// Options say what to run.
type Options struct {
	// Binary is the scheduler.
	Binary string
	// Kubeconfig is the cluster to serve.
	Kubeconfig string
	// Config is a KubeSchedulerConfiguration. It is run with QPS and Burst if they are set. A program that takes none runs by Args
	// alone.
	Config []byte
	// LeaderElection leaves leader election as the configuration has it; otherwise it is off.
	LeaderElection bool
	// QPS limits the scheduler's requests a second, Burst how many may come at once.
	QPS, Burst int
	// Args are further command-line arguments.
	Args []string
	// Port is where the scheduler serves its endpoints, of which anyone may read those of its profiles; 0 is nowhere.
	Port int
	// Dir holds the configuration file and the log, and must exist.
	Dir string
}

// Process is a running scheduler.
type Process struct {
	// LogFile is where it writes.
	LogFile string

	cmd    *exec.Cmd
	exited chan struct{}
	err    error // valid once exited is closed
}

// Usage is what a scheduler consumed from start to end.
type Usage struct {
	// CPU is user and system time.
	CPU time.Duration
	// PeakMemory is the largest resident set, in bytes.
	PeakMemory int64
}

// Start runs the scheduler in the background.
func Start(o Options) (*Process, error) {
	args, err := arguments(o)
	if err != nil {
		return nil, err
	}
	p := &Process{LogFile: filepath.Join(o.Dir, "scheduler.log"), exited: make(chan struct{})}
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the scheduler's log: %w", err)
	}
	defer log.Close() //nolint:errcheck // the child holds its own copy
	p.cmd = exec.Command(o.Binary, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A group of its own: an interrupt at the terminal is for the parent, which stops its scheduler in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Binary, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// arguments writes the configuration, if there is one, and returns the arguments of the program.
func arguments(o Options) ([]string, error) {
	if o.Config == nil {
		return o.Args, nil
	}
	config, err := adapt(o)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	configFile := filepath.Join(o.Dir, "scheduler-config.yaml")
	if err := os.WriteFile(configFile, config, 0o600); err != nil {
		return nil, fmt.Errorf("writing the scheduler's configuration: %w", err)
	}
	args := []string{"--config=" + configFile, "--secure-port=" + strconv.Itoa(o.Port)}
	if o.Port > 0 {
		args = append(args, "--bind-address=127.0.0.1", "--cert-dir="+o.Dir, "--authorization-always-allow-paths=/healthz,/readyz,/debug/pprof/*")
	}
	return append(args, o.Args...), nil
}

// adapt points the configuration at the local cluster.
func adapt(o Options) ([]byte, error) {
	config := map[string]any{}
	if err := yaml.Unmarshal(o.Config, &config); err != nil {
		return nil, err
	}
	connection, _ := config["clientConnection"].(map[string]any)
	if connection == nil {
		connection = map[string]any{}
	}
	connection["kubeconfig"] = o.Kubeconfig
	if o.QPS > 0 {
		connection["qps"], connection["burst"] = o.QPS, o.Burst
	}
	config["clientConnection"] = connection
	if !o.LeaderElection {
		config["leaderElection"] = map[string]any{"leaderElect": false}
	}
	return yaml.Marshal(config)
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Kill ends the scheduler as a crash would, and waits for it.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing the scheduler: %w", err)
	}
	<-p.exited
	return nil
}

// Freeze has the scheduler stand still, as a machine that is short of everything would: its connections stay open, and its leases run out.
func (p *Process) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw has it go on after a Freeze.
func (p *Process) Thaw() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("sending %s to the scheduler: %w", s, err)
	}
	return nil
}

// Stop ends the scheduler and returns what it consumed.
func (p *Process) Stop() (Usage, error) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return Usage{}, fmt.Errorf("stopping the scheduler: %w", err)
	}
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		if err := p.Kill(); err != nil {
			return Usage{}, err
		}
	}
	state := p.cmd.ProcessState
	usage := Usage{CPU: state.UserTime() + state.SystemTime()}
	if resources, ok := state.SysUsage().(*syscall.Rusage); ok {
		usage.PeakMemory = resources.Maxrss * 1024
	}
	return usage, nil
}
