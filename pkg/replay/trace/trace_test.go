// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
)

// write puts files into a directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		f, err := os.Create(filepath.Join(dir, name))
		check(t, err)
		if strings.HasSuffix(name, ".gz") {
			z := gzip.NewWriter(f)
			_, err = z.Write([]byte(text))
			check(t, err)
			check(t, z.Close())
		} else {
			_, err = f.WriteString(text)
			check(t, err)
		}
		check(t, f.Close())
	}
	return dir
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	jobHeader = "job,submit_s,queue,queue_known,gpus,workers,gpus_per_worker,cpus_per_worker,duration_s,status\n"
	machines  = "nodes: {count: 2, cpu: 96, memory: 768Gi, gpus: 8}\n"
)

func TestAScenarioIsRead(t *testing.T) {
	dir := write(t, map[string]string{
		"jobs.csv.gz": jobHeader + "7,30,b,1,16,2,8,4,60,\n3,10,a,1,1,1,1,,5,\n9,99,a,1,1,1,1,,5,\n1,5,a,1,1,1,1,,5,\n",
		"queues.csv":  "queue,nodes,jobs\na,1,3\nb,1,1\n",
		"s.yaml":      machines + "about: some\nqueues: {file: queues.csv}\njobs: jobs.csv.gz\nfrom: 10s\nto: 99s\ncompress: 2\ntick: 1s\n",
	})
	s, err := trace.LoadScenario(filepath.Join(dir, "s.yaml"))
	check(t, err)
	got, err := s.Trace()
	check(t, err)
	want := &trace.Trace{
		Nodes: []trace.Node{
			{Name: "node-00000", MilliCPU: 96000, MemoryMiB: 768 << 10, GPUs: 8}, {Name: "node-00001", MilliCPU: 96000, MemoryMiB: 768 << 10, GPUs: 8},
		},
		Queues: []trace.Queue{{Name: "a", Nodes: 1}, {Name: "b", Nodes: 1}},
		Jobs: []trace.Job{
			{ID: 3, Queue: "a", Duration: 5 * time.Second, Workers: 1, GPUs: 1, MilliGPU: 1000, MilliCPU: -1, MemoryMiB: -1},
			{ID: 7, Queue: "b", Submit: 10 * time.Second, Duration: time.Minute, Workers: 2, GPUs: 8, MilliGPU: 1000, MilliCPU: 4000, MemoryMiB: -1},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("trace (-want,+got)\n%s", diff)
	}
	if s.About != "some" || s.Tick.Duration != time.Second {
		t.Errorf("about is %q, tick %s", s.About, s.Tick.Duration)
	}
}

// TestMarksAndBlanksAreNoPartOfNames: spreadsheets write a mark of the encoding, and people write blanks.
func TestMarksAndBlanksAreNoPartOfNames(t *testing.T) {
	dir := write(t, map[string]string{"jobs.csv": "\ufeffqueue, job,submit_s,workers,gpus_per_worker,duration_s\r\n a ,1,2,3,4,5\r\n"})
	got, err := trace.ReadJobs(filepath.Join(dir, "jobs.csv"))
	check(t, err)
	want := []trace.Job{{ID: 1, Queue: "a", Submit: 2 * time.Second, Duration: 5 * time.Second, Workers: 3, GPUs: 4, MilliGPU: 1000, MilliCPU: -1, MemoryMiB: -1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs (-want,+got)\n%s", diff)
	}
}

func TestALoadChoosesHowFastJobsCome(t *testing.T) {
	dir := write(t, map[string]string{
		"jobs.csv": jobHeader + "0,0,,,16,2,8,,300,\n1,1000,,,16,1,8,,100,\n",
		"s.yaml":   machines + "jobs: jobs.csv\nload: 0.9\n",
	})
	s, err := trace.LoadScenario(filepath.Join(dir, "s.yaml"))
	check(t, err)
	got, err := s.Trace()
	check(t, err)
	if math.Abs(got.Load()-0.9) > 1e-6 {
		t.Errorf("the load is %g, the last job comes at %s", got.Load(), got.Last())
	}
}

func TestHostsAreTakenBySwitches(t *testing.T) {
	dir := write(t, map[string]string{
		"hosts.csv": "host,dsw,psw,asw\nz,g,p2,s1\nb,g,p1,s2\na,g,p1,s2\nc,g,p1,s1\n",
		"jobs.csv":  jobHeader + "0,0,,,1,1,1,,1,\n1,0,,,1,1,1,,1,\n2,0,,,1,1,1,,1,\n",
		"s.yaml":    "nodes: {hosts: hosts.csv, count: 3, cpu: 8, memory: 1Gi, gpus: 1}\njobs: jobs.csv\nqueues: {count: 2}\n",
	})
	s, err := trace.LoadScenario(filepath.Join(dir, "s.yaml"))
	check(t, err)
	got, err := s.Trace()
	check(t, err)
	var names, queues []string
	for _, n := range got.Nodes {
		names = append(names, n.Name)
	}
	for _, j := range got.Jobs {
		queues = append(queues, j.Queue)
	}
	if diff := cmp.Diff([]string{"c", "a", "b"}, names); diff != "" {
		t.Errorf("nodes (-want,+got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"queue-0", "queue-1", "queue-0"}, queues); diff != "" {
		t.Errorf("queues of the jobs (-want,+got)\n%s", diff)
	}
}

func TestPodsAreJobsOfTheirOwn(t *testing.T) {
	dir := write(t, map[string]string{"pods.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n" +
		"a,4000,1024,1,500,,20,50\nb,1000,512,0,0,,10,10\nc,1,1,2,1000,T4|P100,30,40\n"})
	got, err := trace.ReadPods(filepath.Join(dir, "pods.csv"))
	check(t, err)
	want := []trace.Job{
		{ID: 1, Submit: 10 * time.Second, Duration: time.Second, Workers: 1, MilliCPU: 1000, MemoryMiB: 512},
		{ID: 0, Submit: 20 * time.Second, Duration: 30 * time.Second, Workers: 1, GPUs: 1, MilliGPU: 500, MilliCPU: 4000, MemoryMiB: 1024},
		{ID: 2, Submit: 30 * time.Second, Duration: 10 * time.Second, Workers: 1, GPUs: 2, MilliGPU: 1000, MilliCPU: 1, MemoryMiB: 1, Models: []string{"T4", "P100"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs (-want,+got)\n%s", diff)
	}
	if all := got[1].AllGPUs(); all != 0.5 {
		t.Errorf("half a GPU counts %g", all)
	}
}

func TestAPopulationIsInflated(t *testing.T) {
	const header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
	for name, tc := range map[string]struct {
		pods  string
		ratio string
		// least and most are what the pods ask for in the end, in GPUs; drawn: some pods are there more than once.
		least, most float64
		drawn       bool
	}{
		// Two nodes of 8. A half more does not fit 12.8 once 12.5 are asked for.
		"pods are added":     {"a,1,1,1,500\nb,1,1,1,1000\nc,1,1,0,0\n", "0.8", 12, 12.8, true},
		"pods are taken out": {"a,1,1,8,1000\nb,1,1,4,1000\nc,1,1,8,1000\n", "0.8", 4, 12.8, false},
		// Of the one that would be too many only one GPU counts: 8 and 8 are more than 12.8.
		"the last one may be larger": {"a,1,1,8,1000\n", "0.8", 16, 16, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, map[string]string{"pods.csv": header + tc.pods, "s.yaml": machines + "pods: pods.csv\ninflate: {ratio: " + tc.ratio + ", seed: 7}\n"})
			s, err := trace.LoadScenario(filepath.Join(dir, "s.yaml"))
			check(t, err)
			got, err := s.Trace()
			check(t, err)
			again, err := s.Trace()
			check(t, err)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("the same seed gives (-first,+second)\n%s", diff)
			}
			sum := 0.0
			for i, j := range got.Jobs {
				sum += j.AllGPUs()
				if j.ID != i || j.Submit != time.Duration(i)*trace.Every || j.Duration != 0 {
					t.Errorf("job %d is %+v", i, j)
				}
			}
			if sum < tc.least || sum > tc.most || (len(got.Jobs) > len(got.Usual)) != tc.drawn || !got.Once {
				t.Errorf("%d pods of %d ask for %g GPUs, want %g to %g", len(got.Jobs), len(got.Usual), sum, tc.least, tc.most)
			}
		})
	}
}

func TestJobsAreDividedAnew(t *testing.T) {
	for name, tc := range map[string]struct {
		how                             trace.Gangs
		workers, gpus, milli            int
		wantWorkers, wantGPUs, wantCPUs int
	}{
		"as listed":                      {trace.AsListed, 3, 4, 1000, 3, 4, 12},
		"packed":                         {trace.Packed, 4, 4, 1000, 2, 8, 24},
		"packed, on one node":            {trace.Packed, 3, 2, 1000, 1, 6, 36},
		"packed, by the largest divisor": {trace.Packed, 12, 1, 1000, 2, 6, 72},
		"a pod a GPU":                    {trace.PodPerGPU, 2, 8, 1000, 16, 1, 1},
		"a part of a GPU":                {trace.PodPerGPU, 1, 1, 500, 1, 1, 12},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &trace.Trace{Jobs: []trace.Job{{Workers: tc.workers, GPUs: tc.gpus, MilliGPU: tc.milli, MilliCPU: 12, MemoryMiB: -1}}}
			check(t, tr.Divide(tc.how))
			j := tr.Jobs[0]
			if j.Workers != tc.wantWorkers || j.GPUs != tc.wantGPUs || j.MilliCPU != int64(tc.wantCPUs) || j.MemoryMiB != -1 {
				t.Errorf("got %+v", j)
			}
		})
	}
	if err := (&trace.Trace{}).Divide("pairs"); err == nil || err.Error() != `gangs is "pairs": use listed, packed or pod-per-gpu` {
		t.Errorf("got %v", err)
	}
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	const jobs = "jobs: jobs.csv\n"
	for name, tc := range map[string]struct{ scenario, jobs, want string }{
		"a field that is not there":   {machines + jobs + "compres: 2\n", "", `unknown field "compres"`},
		"no jobs":                     {machines, "", `jobs is "" and pods is "": name one of them`},
		"no nodes":                    {jobs, "", "nodes has no file, hosts or count"},
		"nodes without cores":         {"nodes: {count: 1, memory: 1Gi}\n" + jobs, "", "nodes.cpu is 0: write how many cores a node has"},
		"two ways to compress":        {machines + jobs + "compress: 2\nload: 0.9\n", "", "compress is 2 and load is 0.9: write one of them"},
		"backwards":                   {machines + jobs + "from: 10s\nto: 5s\n", "", "to is 5s: write more than from, which is 10s"},
		"a file that is not there":    {machines + "jobs: other.csv\n", "", "no such file"},
		"nothing in the window":       {machines + jobs + "from: 10s\n", jobHeader + "0,0,,,1,1,1,,1,\n", "no job is submitted between 10s and 0s: widen from and to"},
		"a column that is not there":  {machines + jobs, "job,submit_s\n", `has no column "workers": it needs job, submit_s, workers, gpus_per_worker, duration_s`},
		"a number that is none":       {machines + jobs, jobHeader + "0,0,,,1,1,1,,1,\n1,soon,,,1,1,1,,1,\n", `line 3: submit_s is "soon": write a whole number from 0 to 3153600000`},
		"a job without pods":          {machines + jobs, jobHeader + "0,0,,,1,0,1,,1,\n", `line 2: workers is "0": write a whole number from 1 to 100000`},
		"a job of a million pods":     {machines + jobs, jobHeader + "0,0,,,1,1000000,1,,1,\n", `line 2: workers is "1000000": write a whole number from 1 to 100000`},
		"a job that does not run":     {machines + jobs, jobHeader + "0,0,,,1,1,1,,0,\n", `duration_s is "0": write a whole number from 1 to 3153600000`},
		"a job of a thousand years":   {machines + jobs, jobHeader + "0,0,,,1,1,1,,31536000000,\n", `duration_s is "31536000000": write a whole number from 1 to`},
		"two columns of a name":       {machines + jobs, "job,job\n", `has two columns "job": remove one`},
		"too slow":                    {machines + jobs + "compress: 0.001\n", jobHeader + "0,0,,,1,1,1,,1,\n1,3153600000,,,1,1,1,,1,\n", "no trace may be longer than 3153600000"},
		"no compression at all":       {machines + jobs + "compress: .nan\n", "", "compress"},
		"queues of one name":          {machines + jobs + "queues: {file: queues.csv}\n", jobHeader + "0,0,,,1,1,1,,1,\n", `line 3: queue is "a": write a name that no other line has`},
		"an inflation of no GPUs":     {"nodes: {count: 1, cpu: 1, memory: 1Gi}\npods: pods.csv\ninflate: {ratio: 1}\n", "", "the nodes have no GPUs"},
		"a line with too few columns": {machines + jobs, jobHeader + "0,0\n", "wrong number of fields"},
		"gangs of no kind":            {machines + jobs + "gangs: pairs\n", jobHeader + "0,0,,,1,1,1,,1,\n", `gangs is "pairs"`},
		"a topology of no kind":       {machines + jobs + "topology: {mode: firm}\n", "", `topology.mode is "firm": use soft or hard`},
		"a topology without a tier":   {machines + jobs + "topology: {mode: hard}\n", "", "topology.tier is 0: use 1 to 3"},
		"a soft topology with a tier": {machines + jobs + "topology: {mode: soft, tier: 1}\n", "", `topology.tier is 1 and topology.mode "soft": only hard has a tier`},
		"a topology of plain nodes":   {machines + jobs + "topology: {mode: soft}\n", "", "no file says how nodes are connected: name one in nodes.hosts"},
		"a history that is inflated":  {machines + jobs + "inflate: {ratio: 1.3}\n", jobHeader, "inflate is of a list of pods: name one in pods"},
		"an inflation by nothing":     {machines + "pods: jobs.csv\ninflate: {seed: 1}\n", jobHeader, "inflate.ratio is 0: write a number from 0.001 to 1000, like 1.3"},
		"an inflation with times":     {machines + "pods: jobs.csv\ninflate: {ratio: 1}\nload: 1\n", jobHeader, "inflate has no times"},
		"a load of nothing":           {machines + jobs + "load: 1\n", jobHeader + "0,0,,,1,1,1,,1,\n", "all come at once: write compress instead"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, map[string]string{
				"s.yaml": tc.scenario, "jobs.csv": tc.jobs, "queues.csv": "queue,nodes\na,1\na,2\n",
				"pods.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,500\n",
			})
			s, err := trace.LoadScenario(filepath.Join(dir, "s.yaml"))
			if err == nil {
				_, err = s.Trace()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
