// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files writes a scenario of three jobs on two nodes, and a configuration, and returns the directory.
func files(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"small.yaml": "about: Three jobs.\nnodes: {count: 2, cpu: 16, memory: 64Gi, gpus: 8}\njobs: jobs.csv\n",
		"jobs.csv":   "job,submit_s,workers,gpus_per_worker,duration_s\n0,0,1,8,100\n1,10,2,8,100\n2,20,1,8,50\n",
		"mine.conf":  "actions: \"enqueue, allocate\"\ntiers:\n- plugins: [{name: gang}]\n- plugins: [{name: predicates}, {name: proportion}]\n",
		"list.yaml":  "nodes: {count: 1, cpu: 16, memory: 64Gi, gpus: 2}\npods: pods.csv\ninflate: {ratio: 1, seed: 1}\n",
		"pods.csv":   "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,1024,1,1000\nb,1000,1024,1,1000\n",
		"bad.conf":   "tiers:\n- plugins: [{name: gangs}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// command runs the command in a directory.
func command(t *testing.T, args ...string) (out, log string, err error) {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd := New()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestATraceIsPlayedSideBySide(t *testing.T) {
	dir := files(t)
	out, log, err := command(t, filepath.Join(dir, "small.yaml"), "--config", "default", "--config", "x="+filepath.Join(dir, "mine.conf"), "--yardstick", "fifo,easy", "-o", "jobs")
	if err != nil {
		t.Fatal(err)
	}
	// Job 1 needs both nodes, and job 2 passes it: there is no rule that it may not, but in fifo.
	const want = "run,job,queue,gpus,workers,submit_s,start_s,end_s,duration_s,evictions,lost_gpu_s\n" +
		"caldera,0,,8,1,0,0,100,100,0,0\ncaldera,1,,16,2,10,100,200,100,0,0\ncaldera,2,,8,1,20,20,70,50,0,0\n" +
		"x,0,,8,1,0,0,100,100,0,0\nx,1,,16,2,10,100,200,100,0,0\nx,2,,8,1,20,20,70,50,0,0\n" +
		"fifo,0,,8,1,0,0,100,100,0,0\nfifo,1,,16,2,10,100,200,100,0,0\nfifo,2,,8,1,20,200,250,50,0,0\n" +
		"easy,0,,8,1,0,0,100,100,0,0\neasy,1,,16,2,10,100,200,100,0,0\neasy,2,,8,1,20,20,70,50,0,0\n"
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
	for _, name := range []string{"caldera: 4 pods bound", "x: 4 pods bound", "fifo: 4 pods bound", "easy: 4 pods bound"} {
		if !strings.Contains(log, name) {
			t.Errorf("standard error does not say %q:\n%s", name, log)
		}
	}
}

func TestAListIsInflatedBySeveralSeeds(t *testing.T) {
	dir := files(t)
	out, log, err := command(t, filepath.Join(dir, "list.yaml"), "--yardstick", "fifo", "--seeds", "3")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log, "fifo:"); n != 3 {
		t.Errorf("it was played %d times, want 3", n)
	}
	if !strings.Contains(out, "when 50 % were asked for     50.00 %\n") {
		t.Errorf("got\n%s", out)
	}
	for _, format := range []string{"jobs", "html"} {
		if _, _, err := command(t, filepath.Join(dir, "list.yaml"), "--yardstick", "fifo", "--seeds", "3", "-o", format); err != nil {
			t.Errorf("-o %s: %v", format, err)
		}
	}
	if _, _, err := command(t, filepath.Join(dir, "small.yaml"), "--yardstick", "fifo", "--seeds", "3"); err == nil || !strings.Contains(err.Error(), "--seeds is 3: only an inflated list has any") {
		t.Errorf("got %v", err)
	}
}

func TestFlagsChangeTheScenario(t *testing.T) {
	dir := files(t)
	out, _, err := command(t, filepath.Join(dir, "small.yaml"), "--yardstick", "fifo", "--compress", "2", "--gangs", "pod-per-gpu", "--tick", "1s", "-o", "jobs")
	if err != nil {
		t.Fatal(err)
	}
	const want = "fifo,1,,16,16,5,100,200,100,0,0\nfifo,2,,8,8,10,200,250,50,0,0\n"
	if !strings.HasSuffix(out, want) {
		t.Errorf("got\n%swant it to end in\n%s", out, want)
	}
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	dir := files(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no scenario":              {nil, "accepts 1 arg(s), received 0"},
		"one that is not there":    {[]string{"other.yaml"}, "reading a scenario: open other.yaml"},
		"an output of no name":     {[]string{"small.yaml", "-o", "yaml"}, `--output is "yaml": use one of table, json, html, csv, jobs`},
		"a rule of no name":        {[]string{"small.yaml", "--yardstick", "lifo"}, `--yardstick is "lifo": use one of fifo, fifo-static, easy, conservative, shortest`},
		"two ways to compress":     {[]string{"small.yaml", "--load", "1", "--compress", "2"}, "--load is 1 and --compress is 2: use one of them"},
		"no seeds":                 {[]string{"small.yaml", "--seeds", "0"}, "--seeds is 0: use 1 or more"},
		"two columns of one name":  {[]string{"small.yaml", "--config", "mine.conf", "--config", "mine.conf"}, "two columns would be called mine: give one of them another name by --config NAME=FILE"},
		"no load at all":           {[]string{"small.yaml", "--load", "NaN"}, "load is NaN"},
		"a negative time":          {[]string{"small.yaml", "--tick", "-1s"}, "--tick is -1s"},
		"gangs of no kind":         {[]string{"small.yaml", "--gangs", "pairs"}, `gangs is "pairs": use listed, packed or pod-per-gpu`},
		"a plugin of no name":      {[]string{"small.yaml", "--config", "bad.conf"}, `tiers[0].plugins[0].name: Unsupported value: "gangs"`},
		"a configuration not here": {[]string{"small.yaml", "--config", "none.conf"}, "reading the configuration: open"},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			for _, a := range tc.args {
				if _, err := os.Stat(filepath.Join(dir, a)); err == nil {
					a = filepath.Join(dir, a)
				}
				args = append(args, a)
			}
			if _, _, err := command(t, append([]string{}, args...)...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
