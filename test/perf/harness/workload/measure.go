// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/caldera-scheduler/caldera/test/perf/harness/workload/processor"
)

const (
	upstream = "k8s.io/kubernetes"
	etcd     = "go.etcd.io/etcd/server/v3"
	module   = "github.com/caldera-scheduler/caldera"
	process  = module + "/test/perf/harness/process"
	// theirs and ours are where upstream's workloads and our own are in their modules.
	theirs = "test/integration/scheduler_perf"
	ours   = "test/perf/harness/workload/ours"
	// file is what a directory of workloads has them in.
	file = "performance-config.yaml"
)

// Runner measures.
type Runner struct {
	// Binary is the test binary of package process.
	Binary string
	// Bin is the directory of the programs that the harness starts: etcd.
	Bin string
	// Upstream and Ours are the directories of the workloads.
	Upstream, Ours string
	// Kubernetes is the directory of upstream's module.
	Kubernetes string
	// Out gets a directory for each measurement, with what the harness found.
	Out string
	// Temp is where etcd and the API server have their files for a while; its disk should be memory. Empty: where temporary
	// files are. The path must be short, as that of a socket in it must be.
	Temp string
	// Timeout is how long one measurement may take.
	Timeout time.Duration
	// Profile keeps a CPU profile of the process beside what was found: API server, scheduler and harness.
	Profile bool
}

// Prepare builds etcd into a directory, from the version that the module has, and finds the workloads.
func (r *Runner) Prepare(ctx context.Context, bin string) error {
	var err error
	if r.Bin, err = filepath.Abs(bin); err != nil {
		return fmt.Errorf("finding %s: %w", bin, err)
	}
	if _, err := goCommand(ctx, "build", "-o", filepath.Join(r.Bin, "etcd"), etcd); err != nil {
		return err
	}
	return r.find(ctx)
}

// find finds the workloads.
func (r *Runner) find(ctx context.Context) error {
	kubernetes, err := goCommand(ctx, "list", "-m", "-f", "{{.Dir}}", upstream)
	if err != nil {
		return err
	}
	caldera, err := goCommand(ctx, "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return err
	}
	r.Kubernetes, r.Upstream, r.Ours = kubernetes, filepath.Join(kubernetes, theirs), filepath.Join(caldera, ours)
	return nil
}

// Build builds the binary that measures, besides what Prepare does.
func (r *Runner) Build(ctx context.Context, bin string) error {
	if err := r.Prepare(ctx, bin); err != nil {
		return err
	}
	r.Binary = filepath.Join(r.Bin, "scheduler-perf")
	_, err := goCommand(ctx, "test", "-c", "-o", r.Binary, process)
	return err
}

func goCommand(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as in the Makefile, so that compiled packages are shared
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(stdout)), nil
}

// Measure runs a workload once. The run is a part of the name of the directory that keeps what was found. It may be called for
// several schedulers at a time; processors are those that the run is to have for itself, all if none are given.
func (r *Runner) Measure(ctx context.Context, w Workload, s Scheduler, run int, processors ...int) (Figures, error) {
	dir, err := filepath.Abs(filepath.Join(r.Out, w.directory(), fmt.Sprintf("%s-%d", s, run)))
	if err != nil {
		return Figures{}, fmt.Errorf("finding %s: %w", r.Out, err)
	}
	figures, err := r.measure(ctx, w, s, dir, processors)
	if err != nil {
		return Figures{}, fmt.Errorf("measuring %s with %s: %w", w, s, err)
	}
	return figures, nil
}

func (r *Runner) measure(ctx context.Context, w Workload, s Scheduler, dir string, processors []int) (Figures, error) {
	// What an earlier run left would be read as if it were of this one.
	if err := os.RemoveAll(dir); err != nil {
		return Figures{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Figures{}, err
	}
	home := r.home(w)
	if err := w.writeTo(dir, home, s); err != nil {
		return Figures{}, err
	}
	if err := r.start(ctx, w, s, dir, home, processors); err != nil {
		return Figures{}, err
	}
	return read(dir)
}

// home is the directory of a workload, from which it names its templates.
func (r *Runner) home(w Workload) string {
	if w.Upstream == "" {
		return r.Ours
	}
	return filepath.Join(r.Upstream, w.Upstream)
}

// The files of a measurement, besides those that the harness names.
const (
	workloadFile = "workload.json"
	configFile   = "scheduler.yaml"
	bindsFile    = "binds.json"
	logFile      = "log.txt"
)

// writeTo writes the workload and the scheduler's configuration.
func (w Workload) writeTo(dir, home string, s Scheduler) error {
	config, err := w.configuration(s)
	if err != nil {
		return err
	}
	configPath := ""
	if config != nil {
		configPath = filepath.Join(dir, configFile)
		if err := os.WriteFile(configPath, config, 0o644); err != nil {
			return err
		}
	}
	all, err := os.ReadFile(filepath.Join(home, file))
	if err != nil {
		return err
	}
	alone, err := w.alone(all, configPath)
	if err != nil {
		return fmt.Errorf("reading %s: %w", filepath.Join(home, file), err)
	}
	return os.WriteFile(filepath.Join(dir, workloadFile), alone, 0o644)
}

// start runs the process that measures until it has ended, and all that it started. Templates are found from home.
func (r *Runner) start(ctx context.Context, w Workload, s Scheduler, dir, home string, processors []int) error {
	temp, err := os.MkdirTemp(r.Temp, "perf")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) //nolint:errcheck // a leftover does no harm
	log, err := os.Create(filepath.Join(dir, logFile))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the child has written what it had to say
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("it did not end within %v", r.Timeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, r.Binary,
		"-test.run=^$", "-test.bench=^BenchmarkWorkload$", "-test.benchtime=1x",
		"-perf-scheduling-label-filter=", "-data-items-dir="+dir,
		"-kubernetes="+r.Kubernetes, "-workload="+filepath.Join(dir, workloadFile), "-binds="+filepath.Join(dir, bindsFile),
		fmt.Sprintf("-caldera=%t", s != Stock && s != Control), fmt.Sprintf("-kubelets=%t", w.Kubelets),
		// A step that does not end tells more than a process that is killed.
		"-patience="+(r.Timeout/2).String(), fmt.Sprintf("-perf-cpuprofile=%t", r.Profile))
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, log, log
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "PATH="+r.Bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	// A group of its own, so that an etcd whose parent was killed can be ended, too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := processor.Start(cmd, processors); err != nil {
		return err
	}
	err = cmd.Wait()
	if killErr := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); killErr != nil && !errors.Is(killErr, syscall.ESRCH) {
		return fmt.Errorf("ending what the measurement started: %w", killErr)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s\nThe whole log is in %s", errors.Join(err, context.Cause(ctx)), failure(log.Name()), log.Name())
	}
	return nil
}

// failure is what a log says of the failure: what the harness calls an error, a panic, or else the last lines.
func failure(log string) string {
	const most = 15
	data, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	verdict := slices.IndexFunc(lines, func(line string) bool {
		return strings.Contains(line, "FATAL ERROR:") || strings.HasPrefix(line, "panic: ")
	})
	if verdict < 0 {
		verdict = max(0, len(lines)-most)
	}
	return strings.Join(lines[verdict:min(len(lines), verdict+most)], "\n")
}
