// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/kubernetes/pkg/apis/core"
	coreconversion "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

var (
	batch = contender{name: "batch", batch: true}
	plain = contender{name: "plain"}
)

func small() scenario {
	return scenario{
		Nodes: 20, Room: 0.2, Fill: 2, Hopeless: 10, Shapes: 3, Probes: 1, ProbeSize: 1,
		Every: time.Second, Warm: time.Second, Patience: time.Second, Runs: 1,
	}
}

func TestQuantileIsOneOfTheValues(t *testing.T) {
	values := make([]time.Duration, 100)
	for i := range values {
		values[i] = time.Duration(i + 1)
	}
	for name, tc := range map[string]struct {
		values []time.Duration
		q      float64
		want   time.Duration
	}{
		"of none":                {nil, 0.5, none},
		"of one":                 {values[:1], 0.99, 1},
		"the lesser of a pair":   {values[:2], 0.5, 1},
		"the median of an odd":   {values[:3], 0.5, 2},
		"the 99th of a hundred":  {values, 0.99, 99},
		"the 99th of few is max": {values[:30], 0.99, 30},
		"the most":               {values, 1, 100},
		"the least":              {values, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quantile(tc.values, tc.q); got != tc.want {
				t.Errorf("quantile %g is %d, want %d", tc.q, got, tc.want)
			}
		})
	}
}

// validate returns what the API server has against a new pod.
func validate(t *testing.T, pod *corev1.Pod) error {
	t.Helper()
	versioned := pod.DeepCopy()
	coreconversion.SetObjectDefaults_Pod(versioned)
	var internal core.Pod
	if err := coreconversion.Convert_v1_Pod_To_core_Pod(versioned, &internal, nil); err != nil {
		t.Fatal(err)
	}
	return validation.ValidatePodCreate(&internal, validation.PodValidationOptions{}).ToAggregate()
}

func TestHopelessPodsAreValidAndLabelledApart(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s, names := small(), map[string]bool{}
			for _, c := range []contender{batch, plain} {
				clear(names)
				for i := range s.Hopeless {
					for _, p := range podsOf(t, c, s, k, i) {
						if err := validate(t, p); err != nil {
							t.Errorf("%s of %s: %v", p.Name, c.name, err)
						}
						names[p.Labels["job-name"]] = true
					}
				}
				if want := s.Hopeless * k.pods(); len(names) != want || names[""] {
					t.Errorf("%s: %d different labels job-name, want %d", c.name, len(names), want)
				}
			}
		})
	}
}

// podsOf builds a hopeless job and returns its pods. All its objects must have a name.
func podsOf(t *testing.T, c contender, s scenario, k kind, number int) []*corev1.Pod {
	t.Helper()
	var pods []*corev1.Pod
	for _, o := range hopeless(c, s, k, number) {
		if named, err := meta.Accessor(o); err != nil || named.GetName() == "" {
			t.Errorf("%T has no name (%v)", o, err)
		}
		if p, ok := o.(*corev1.Pod); ok {
			pods = append(pods, p)
		}
	}
	if len(pods) != k.pods() {
		t.Errorf("job %d has %d pods, want %d", number, len(pods), k.pods())
	}
	return pods
}

func TestPlainPodsHaveNoGroups(t *testing.T) {
	for _, k := range kinds {
		for _, o := range hopeless(plain, small(), k, 0) {
			if p, ok := o.(*corev1.Pod); ok && (p.Annotations[model.GroupNameAnnotation] != "" || p.Spec.SchedulerName != "") {
				t.Errorf("%s: a plain pod is of group %q and scheduler %q", k.name, p.Annotations[model.GroupNameAnnotation], p.Spec.SchedulerName)
			}
		}
	}
}

func TestKindsHaveNamesOfTheirOwnAndSayWhatTheyAre(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range kinds {
		if k.name == "" || k.about == "" || seen[k.name] {
			t.Errorf("kind %q, %q has no name of its own, or says nothing", k.name, k.about)
		}
		seen[k.name] = true
		if k.batchOnly && k.minMember == 0 {
			t.Errorf("kind %q is for PodGroups only, and has none", k.name)
		}
	}
}

func TestShapesDiffer(t *testing.T) {
	s, asked := small(), map[int64]bool{}
	for i := range s.Hopeless {
		asked[podsOf(t, batch, s, kinds[0], i)[0].Spec.Containers[0].Resources.Requests.Cpu().MilliValue()] = true
	}
	if len(asked) != s.Shapes {
		t.Errorf("%d different requests, want %d", len(asked), s.Shapes)
	}
}

func TestNobodyButAFillerFitsWhereOthersEnd(t *testing.T) {
	for fill := 2; fill <= 50; fill++ {
		s := scenario{Fill: fill, Shapes: maxShapes}
		node, free := int64(fill*fillerMillicores), int64((fill-1)*fillerMillicores)
		for _, k := range kinds {
			if k.millicores == nil || k.request(s, 0) != nearlyFull(fill) {
				continue
			}
			if least, most := k.request(s, 0), k.request(s, maxShapes-1); least <= free || most > node {
				t.Errorf("%s asks for %d to %d of a node of %d that has up to %d free", k.name, least, most, node, free)
			}
		}
	}
}

func TestSpareNodesHoldOneJob(t *testing.T) {
	s := small()
	s.Shapes = 100
	for _, k := range kinds {
		all, one := int64(k.pods())*k.request(s, s.Shapes-1), k.request(s, 0)
		if spare := k.spareCores(s); k.turns && (spare < all || spare >= all+one) {
			t.Errorf("%s: a spare node of %d millicores is not for one job of %d", k.name, spare, all)
		}
	}
}

func TestProbesAndFillersAreValid(t *testing.T) {
	for _, c := range []contender{batch, plain} {
		g, pods := probe(c, "probe-0001", 3)
		if (g != nil) != c.batch || len(pods) != 3 {
			t.Errorf("%s: a probe of 3 has group %v and %d pods", c.name, g, len(pods))
		}
		for _, p := range append(pods, filler(c, 7), sitter(c, nodeName(poolRoom, 1), 1000)) {
			if err := validate(t, p); err != nil {
				t.Errorf("%s of %s: %v", p.Name, c.name, err)
			}
		}
	}
}

func TestChurnLeavesEveryNodeAFiller(t *testing.T) {
	s := small()
	c := newChurn(clients{}, batch, s)
	picked := 0
	for {
		name, ok := c.pick()
		if !ok {
			break
		}
		picked++
		for node, held := range c.held {
			if len(held) == 0 {
				t.Fatalf("%s ended: %s has none left", name, node)
			}
		}
	}
	if want := s.fullNodes() * (s.Fill - 1); picked != want {
		t.Errorf("%d ended, want %d", picked, want)
	}
	c.made["filler-new"] = time.Unix(10, 0)
	p := filler(batch, 0)
	p.Name, p.Spec.NodeName = "filler-new", nodeName(poolFull, 0)
	c.bound(p, time.Unix(12, 0))
	if waiting, waits := c.replaced(0); waiting != 0 || len(waits) != 1 || waits[0] != 2*time.Second {
		t.Errorf("%d wait and %v waited, want none and 2 s", waiting, waits)
	}
	if _, ok := c.pick(); !ok {
		t.Error("a node that was filled again has nobody who ends")
	}
}

func TestWantedIsThereWithItsLastPod(t *testing.T) {
	since := time.Now()
	w := newWanted(2)
	w.count(since.Add(time.Millisecond))
	if _, ok := w.await(t.Context(), since, 0); ok {
		t.Error("one of two pods is bound, and the wait is over")
	}
	w.count(since.Add(3 * time.Millisecond))
	if got, ok := w.await(t.Context(), since, time.Minute); !ok || got != 3*time.Millisecond {
		t.Errorf("it waited %s (%t), want 3ms", got, ok)
	}
}

// parse returns the plan that command lines come to.
func parse(args ...string) (plan, error) {
	var o options
	flags := pflag.NewFlagSet("wait", pflag.ContinueOnError)
	bind(flags, &o)
	if err := flags.Parse(args); err != nil {
		return plan{}, err
	}
	if err := applyRow(flags, o.row); err != nil {
		return plan{}, err
	}
	return o.plan()
}

func TestFlagsOverrideTheirRow(t *testing.T) {
	p, err := parse("--row=small", "--ends=3", "--kinds=gated")
	if err != nil || p.Nodes != 200 || p.Ends != 3 || p.Hopeless != 300 || len(p.kinds) != 1 {
		t.Errorf("the plan is %+v of %d kinds (%v)", p.scenario, len(p.kinds), err)
	}
	for _, r := range rows {
		if _, err := parse("--row", r.name); err != nil {
			t.Errorf("row %s: %v", r.name, err)
		}
	}
}

func TestAllKindsAreMeant(t *testing.T) {
	if p, err := parse("--kinds=all", "--contenders=plain"); err != nil || len(p.kinds) != len(kinds) {
		t.Errorf("all are %d kinds, want %d (%v)", len(p.kinds), len(kinds), err)
	}
}

func TestWrongFlagsSaySo(t *testing.T) {
	for name, tc := range map[string]struct{ flag, want string }{
		"a row there is not":         {"--row=huge", "use one of small, gangs, large"},
		"a kind there is not":        {"--kinds=sad", `--kinds has "sad"`},
		"no kind":                    {"--kinds=", "--kinds"},
		"a contender there is not":   {"--contenders=best", `--contenders has "best"`},
		"a contender twice":          {"--contenders=stock,stock", "twice"},
		"a program there is not":     {"--contenders=a=/there/is/not", "no such file"},
		"a contender of other pods":  {"--contenders=a:odd=/bin/sh", "write NAME=PATH"},
		"an output there is not":     {"--output=xml", "text or json"},
		"too few nodes":              {"--nodes=3", "--nodes is 3"},
		"all nodes with room":        {"--room=1", "--room is 1"},
		"a filler a node":            {"--fill=1", "--fill is 1"},
		"a negative rate":            {"--ends=-1", "--ends is -1"},
		"a negative number of jobs":  {"--hopeless=-1", "--hopeless is -1"},
		"no shape":                   {"--shapes=0", "--shapes is 0"},
		"no probe":                   {"--probes=0", "--probes is 0"},
		"probes of nothing":          {"--probe-size=0", "--probe-size is 0"},
		"probes larger than room is": {"--probe-size=1000", "two probes must fit"},
		"no time between probes":     {"--every=0", "--every is 0s"},
		"no patience":                {"--patience=0", "--patience is 0s"},
		"no time to warm up":         {"--warm=0", "--warm is 0s"},
		"a negative time":            {"--settle=-1s", "--settle is -1s"},
		"more than all possible":     {"--possible=1.5", "--possible is 1.5"},
		"no run":                     {"--runs=0", "--runs is 0"},
		"no request":                 {"--qps=0", "--qps is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(tc.flag); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s leads to %v, want %q", tc.flag, err, tc.want)
			}
		})
	}
	if _, err := parse("--nodes=1", "--runs=0"); err == nil || strings.Count(err.Error(), "--") != 2 {
		t.Errorf("two wrong flags lead to %v", err)
	}
}

func TestCommandTakesNoArguments(t *testing.T) {
	cmd := newCommand()
	cmd.SetArgs([]string{"small"})
	cmd.SetErr(&bytes.Buffer{})
	if err := cmd.Execute(); err == nil {
		t.Error("the command takes an argument")
	}
}

func sample() (plan, []record) {
	ms := time.Millisecond
	return plan{scenario: small(), kinds: kinds[:1], contenders: []contender{batch, plain}}, []record{
		{Contender: "batch", Kind: kinds[0].name, Run: 1, Result: result{
			Probes: 2, Latencies: []time.Duration{20 * ms}, CPU: time.Second, Window: 4 * time.Second, Memory: 64 << 20,
			Replaced: []time.Duration{ms}, Waiting: 3, Turns: 2, Turned: []time.Duration{5 * ms},
		}},
		{Contender: "batch", Kind: kinds[0].name, Run: 2, Result: result{
			Probes: 2, Latencies: []time.Duration{10 * ms, 30 * ms}, CPU: time.Second, Window: 4 * time.Second, Memory: 32 << 20, Escaped: 1,
		}},
	}
}

func TestReportJoinsRuns(t *testing.T) {
	var out bytes.Buffer
	p, records := sample()
	if err := report(&out, p, records); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	got := strings.Join(strings.Fields(lines[2]), " ")
	if want := fmt.Sprintf("%s batch 3/4 20.0 30.0 30.0 25.0 64 1/4 1.0 1.0 1/2 5.0", kinds[0].name); got != want {
		t.Errorf("the line is\n%s\nwant\n%s", got, want)
	}
	if !strings.Contains(out.String(), "run 2: 1 hopeless pods were bound") {
		t.Errorf("the report does not say that hopeless pods were bound:\n%s", out.String())
	}
}

func TestReportAsJSONHasEveryRun(t *testing.T) {
	var out bytes.Buffer
	p, records := sample()
	p.json = true
	if err := report(&out, p, records); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Scenario scenario
		Runs     []record
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Scenario != p.scenario || len(got.Runs) != 2 {
		t.Fatalf("it is read as %+v (%v)", got, err)
	}
	if got.Runs[1].Result.Latencies[1] != 30*time.Millisecond || got.Runs[0].Run != 1 {
		t.Errorf("runs are %+v", got.Runs)
	}
}
