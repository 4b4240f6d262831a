// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Scenario says which trace is played, and what of it. Files are beside that of the scenario.
type Scenario struct {
	// About is what it is for, in a sentence.
	About  string `json:"about"`
	Nodes  Nodes  `json:"nodes"`
	Queues Queues `json:"queues"`
	// Jobs is a list of jobs, Pods one of pods, each a job of its own. One of them is given.
	Jobs string `json:"jobs"`
	Pods string `json:"pods"`
	// From and To cut out the jobs that are submitted meanwhile; To 0: to the end.
	From metav1.Duration `json:"from"`
	To   metav1.Duration `json:"to"`
	// Compress has jobs come so many times as fast. Load, in the place of it, chooses how many: so that they ask for this part of the GPUs.
	Compress float64 `json:"compress"`
	Load     float64 `json:"load"`
	// Inflate plays a population in the place of a history: each pod once, in random order, and for ever.
	Inflate *Inflate `json:"inflate"`
	// Gangs is how jobs are divided into pods; empty: as listed.
	Gangs Gangs `json:"gangs"`
	// Topology is how close gangs want their pods, where nodes are hosts.
	Topology Topology `json:"topology"`
	// Tick is how finely time is divided; 0: the player's default.
	Tick metav1.Duration `json:"tick"`
	// Partitioned: no queue may have more than it is due.
	Partitioned bool `json:"partitioned"`
	// Ends is what the scheduler is told of when pods end; empty: nothing.
	Ends Ends `json:"ends"`

	// dir is where the files are.
	dir string
}

// Inflate says how pods come that have no history ("Beware of Fragmentation", USENIX ATC 2023): the list in random order, then more of the same,
// drawn at random, until they ask for a part of the GPUs.
type Inflate struct {
	// Ratio is that part, above 0; 1.3 is what was published.
	Ratio float64 `json:"ratio"`
	// Seed is of the order.
	Seed uint64 `json:"seed"`
}

// Nodes are the machines: those of a file, hosts with the switches above them, or so many alike.
type Nodes struct {
	File  string `json:"file"`
	Hosts string `json:"hosts"`
	// Count is how many there are without a file. With hosts, how many are taken, by switches and names, so that they are close to each other.
	Count int `json:"count"`
	// CPU, Memory and GPUs are those of each, where no file says it.
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
	GPUs   int               `json:"gpus"`
}

// Queues are those of a file, or so many among which jobs are divided by their number.
type Queues struct {
	File  string `json:"file"`
	Count int    `json:"count"`
}

// slowest is the least by which time can be compressed, or a cluster be loaded, and its inverse the most.
const slowest = 0.001

// LoadScenario reads a scenario. An error names the file, the field, the value and what to change.
func LoadScenario(file string) (*Scenario, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading a scenario: %w", err)
	}
	s := &Scenario{dir: filepath.Dir(file), Gangs: AsListed}
	if err := yaml.UnmarshalStrict(data, s); err != nil {
		return nil, fmt.Errorf("reading scenario %s: %w", file, err)
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", file, err)
	}
	return s, nil
}

// Check finds what cannot be, all of it.
func (s *Scenario) Check() error {
	var f findings
	f.add((s.Jobs == "") == (s.Pods == ""), "jobs is %q and pods is %q: name one of them", s.Jobs, s.Pods)
	s.checkTimes(&f)
	f.add(!s.Ends.Valid(), "ends is %q: use %s or %s, or leave it out", s.Ends, Enforced, Declared)
	s.checkTopology(&f)
	s.checkInflation(&f)
	s.checkCluster(&f)
	return errors.Join(f...)
}

// findings are what is wrong with a scenario.
type findings []error

// add adds a finding if something is wrong.
func (f *findings) add(wrong bool, format string, args ...any) {
	if wrong {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// within reports whether a number is in a range. Nothing that is no number is.
func within(x, least, most float64) bool { return x >= least && x <= most }

func (s *Scenario) checkTimes(f *findings) {
	f.add(s.Compress != 0 && !within(s.Compress, slowest, 1/slowest), "compress is %g: write a number from %g to %g", s.Compress, slowest, 1/slowest)
	f.add(s.Load != 0 && !within(s.Load, slowest, 1/slowest), "load is %g: write a number from %g to %g, like 0.9", s.Load, slowest, 1/slowest)
	f.add(s.Compress != 0 && s.Load != 0, "compress is %g and load is %g: write one of them", s.Compress, s.Load)
	f.add(s.From.Duration < 0, "from is %s: write 0s or more", s.From.Duration)
	f.add(s.To.Duration != 0 && s.To.Duration <= s.From.Duration, "to is %s: write more than from, which is %s", s.To.Duration, s.From.Duration)
	f.add(s.Tick.Duration < 0, "tick is %s: write 0s or more", s.Tick.Duration)
}

func (s *Scenario) checkTopology(f *findings) {
	t := s.Topology
	f.add(t.Mode != "" && t.Mode != Soft && t.Mode != Hard, "topology.mode is %q: use %s or %s", t.Mode, Soft, Hard)
	f.add(t.Mode == Hard && (t.Tier < 1 || t.Tier > tiers), "topology.tier is %d: use 1 to %d", t.Tier, tiers)
	f.add(t.Mode != Hard && t.Tier != 0, "topology.tier is %d and topology.mode %q: only %s has a tier", t.Tier, t.Mode, Hard)
	f.add(t.Mode != "" && s.Nodes.Hosts == "", "topology.mode is %q, and no file says how nodes are connected: name one in nodes.hosts", t.Mode)
}

func (s *Scenario) checkInflation(f *findings) {
	if s.Inflate == nil {
		return
	}
	f.add(!within(s.Inflate.Ratio, slowest, 1/slowest), "inflate.ratio is %g: write a number from %g to %g, like 1.3", s.Inflate.Ratio, slowest, 1/slowest)
	f.add(s.Pods == "", "inflate is of a list of pods: name one in pods")
	f.add(s.Compress != 0 || s.Load != 0 || s.From.Duration != 0 || s.To.Duration != 0, "inflate has no times: leave from, to, compress and load out")
}

func (s *Scenario) checkCluster(f *findings) {
	n, q := s.Nodes, s.Queues
	f.add(n.File != "" && n.Hosts != "", "nodes.file is %q and nodes.hosts is %q: name one of them", n.File, n.Hosts)
	f.add(n.Count < 0 || n.Count > mostPods, "nodes.count is %d: write 1 to %d", n.Count, mostPods)
	f.add(n.File == "" && n.Hosts == "" && n.Count == 0, "nodes has no file, hosts or count: say which nodes there are")
	if n.File == "" {
		f.add(n.CPU.Sign() <= 0, "nodes.cpu is %s: write how many cores a node has", n.CPU.String())
		f.add(n.Memory.Sign() <= 0, "nodes.memory is %s: write how much memory a node has, like 768Gi", n.Memory.String())
	}
	f.add(n.GPUs < 0 || n.GPUs > mostPods, "nodes.gpus is %d: write 0 to %d", n.GPUs, mostPods)
	f.add(q.Count < 0 || q.Count > mostPods, "queues.count is %d: write 0 to %d", q.Count, mostPods)
	f.add(q.Count > 0 && q.File != "", "queues.file is %q and queues.count is %d: write one of them", q.File, q.Count)
}

// Trace reads the files of the scenario, and cuts and compresses what they say.
func (s *Scenario) Trace() (*Trace, error) {
	t := &Trace{Topology: s.Topology}
	for _, read := range []func(*Trace) error{s.readNodes, s.readJobs, s.readQueues} {
		if err := read(t); err != nil {
			return nil, err
		}
	}
	if s.Inflate != nil {
		if t.GPUs() == 0 {
			return nil, errors.New("the nodes have no GPUs: a list is inflated until it asks for a part of them, name other nodes")
		}
		t.inflate(*s.Inflate)
		return t, nil
	}
	t.Window(s.From.Duration, s.To.Duration)
	t.name()
	if len(t.Jobs) == 0 {
		return nil, fmt.Errorf("no job is submitted between %s and %s: widen from and to", s.From.Duration, s.To.Duration)
	}
	if err := s.compress(t); err != nil {
		return nil, err
	}
	err := t.Divide(s.Gangs)
	return t, err
}

// compress has jobs come as fast as the scenario says.
func (s *Scenario) compress(t *Trace) error {
	factor := cmp.Or(s.Compress, 1)
	if s.Load > 0 {
		load := t.Load()
		if load == 0 {
			return fmt.Errorf("load is %g, and the jobs ask for no GPUs, or all come at once: write compress instead", s.Load)
		}
		factor = s.Load / load
	}
	if last := t.Last().Seconds() / factor; last > mostSeconds {
		return fmt.Errorf("compressed %g times the last job comes after %g seconds: no trace may be longer than %d, choose a greater load or compress", factor, last, mostSeconds)
	}
	t.Compress(factor)
	return nil
}

// name adds the queues that jobs name and no file has. They are due nothing.
func (t *Trace) name() {
	known := map[string]bool{"": true}
	for _, q := range t.Queues {
		known[q.Name] = true
	}
	for _, j := range t.Jobs {
		if !known[j.Queue] {
			known[j.Queue] = true
			t.Queues = append(t.Queues, Queue{Name: j.Queue})
		}
	}
}

func (s *Scenario) path(file string) string { return filepath.Join(s.dir, file) }

func (s *Scenario) readNodes(t *Trace) (err error) {
	machine := Node{MilliCPU: s.Nodes.CPU.MilliValue(), MemoryMiB: s.Nodes.Memory.Value() >> 20, GPUs: s.Nodes.GPUs}
	switch {
	case s.Nodes.File != "":
		t.Nodes, err = ReadNodes(s.path(s.Nodes.File))
	case s.Nodes.Hosts != "":
		t.Nodes, err = ReadHosts(s.path(s.Nodes.Hosts), machine)
		slices.SortFunc(t.Nodes, func(a, b Node) int {
			return cmp.Or(slices.Compare(a.Network, b.Network), cmp.Compare(a.Name, b.Name))
		})
		if s.Nodes.Count > 0 && s.Nodes.Count < len(t.Nodes) {
			t.Nodes = t.Nodes[:s.Nodes.Count]
		}
	default:
		for i := range s.Nodes.Count {
			machine.Name = fmt.Sprintf("node-%05d", i)
			t.Nodes = append(t.Nodes, machine)
		}
	}
	return err
}

func (s *Scenario) readJobs(t *Trace) (err error) {
	if s.Pods != "" {
		t.Jobs, err = ReadPods(s.path(s.Pods))
		for _, j := range t.Jobs {
			if err == nil && j.Duration == 0 && s.Inflate == nil {
				return fmt.Errorf("%s does not say how long pods ran: it cannot be played by time", s.Pods)
			}
		}
		return err
	}
	t.Jobs, err = ReadJobs(s.path(s.Jobs))
	return err
}

func (s *Scenario) readQueues(t *Trace) (err error) {
	if s.Queues.File != "" {
		t.Queues, err = ReadQueues(s.path(s.Queues.File))
		return err
	}
	for i := range s.Queues.Count {
		t.Queues = append(t.Queues, Queue{Name: fmt.Sprintf("queue-%d", i), Nodes: max(1, len(t.Nodes)/s.Queues.Count)})
	}
	for i := range t.Jobs {
		if s.Queues.Count > 0 {
			t.Jobs[i].Queue = t.Queues[t.Jobs[i].ID%s.Queues.Count].Name
		}
	}
	return nil
}
