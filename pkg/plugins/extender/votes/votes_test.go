// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package votes_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// noon is when the simulations begin.
var noon = time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)

// question is what the tests read of a question.
type question struct {
	Job      job
	Task     task
	Queue    struct{ Name string }
	Evictor  struct{ Name string }
	Evictees []task
	Jobs     map[string]job
	Nodes    map[string]struct{ Tasks map[string]task }
	Queues   map[string]struct{ Weight int }
}

type job struct {
	Name  string
	Tasks map[string]task
}

type task struct{ UID, Name, NodeName string }

// extender is a server with an answer for each verb, "500" for a failure; it remembers how often it was asked what.
type extender struct {
	answers map[string]func(q question, asked int) string

	mu    sync.Mutex // guards asked
	asked map[string]int
}

func (e *extender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verb := strings.TrimPrefix(r.URL.Path, "/")
	var q question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	e.asked[verb]++
	key := verb + " " + q.Job.Name + q.Queue.Name + q.Evictor.Name
	e.asked[key]++
	n := e.asked[key]
	e.mu.Unlock()
	answer := "{}"
	if of := e.answers[verb]; of != nil {
		answer = of(q, n)
	}
	if answer == "500" {
		w.WriteHeader(http.StatusInternalServerError)
	}
	fmt.Fprint(w, answer)
}

// always is the same answer to every question.
func always(answer string) func(question, int) string {
	return func(question, int) string { return answer }
}

// outcome is a cluster, an extender and what comes of both.
type outcome struct {
	// tiers are a volcano-scheduler.conf; EXTENDER stands for the entry of the extender.
	tiers string
	// verbs are those that are asked, each by its own name; arguments are what else the entry says.
	verbs     []string
	arguments string
	answers   map[string]func(question, int) string
	objects   string
	// want are the pods with their nodes, and the jobs that wait with the reason.
	want []string
	// least is how often verbs are asked at least, about all and about one object.
	least map[string]int
}

const tiers = "actions: enqueue, allocate\ntiers: [{plugins: [{name: priority}, {name: gang}, EXTENDER]}]\n"

func (o outcome) run(t *testing.T) {
	if diff := cmp.Diff(o.want, o.play(t)); diff != "" {
		t.Errorf("outcome (-want,+got)\n%s", diff)
	}
}

// play simulates half a minute.
func (o outcome) play(t *testing.T) []string {
	t.Helper()
	e := &extender{answers: o.answers, asked: map[string]int{}}
	server := httptest.NewServer(e)
	defer server.Close()
	entry := fmt.Sprintf("{name: extender, arguments: {extender.urlPrefix: '%s', extender.httpTimeout: 1m", server.URL)
	for _, verb := range o.verbs {
		entry += fmt.Sprintf(", extender.%sVerb: %s", verb, verb)
	}
	if o.arguments != "" {
		entry += ", " + o.arguments
	}
	if o.tiers == "" {
		o.tiers = tiers
	}
	config, err := profile.Read("volcano-scheduler.conf", []byte(strings.ReplaceAll(o.tiers, "EXTENDER", entry+"}}")), profile.Only)
	if err != nil {
		t.Fatal(err)
	}
	read, err := scenario.Read("scenario", []byte(o.objects))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := scenario.Complete(read, noon)
	if err != nil {
		t.Fatal(err)
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
	result, err := simulate.Run(klog.NewContext(t.Context(), logger), objects, simulate.Options{Config: config, Now: noon, For: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for verb, n := range o.least {
		if e.asked[verb] < n {
			t.Errorf("%s was asked %d times, want at least %d", verb, e.asked[verb], n)
		}
	}
	for key, n := range e.asked {
		if verb, _, _ := strings.Cut(key, " "); !slices.Contains(o.verbs, verb) {
			t.Errorf("%s was asked %d times", key, n)
		}
	}
	return describe(result, server.URL)
}

// describe lists the pods, and the jobs that wait with the reason.
func describe(r *simulate.Result, server string) []string {
	var all []string
	for _, p := range r.Pods {
		node := p.Node
		if node == "" {
			node = "-"
		}
		all = append(all, p.Name+" "+node)
	}
	for _, j := range r.Jobs {
		if j.Waits != nil {
			all = append(all, fmt.Sprintf("%s: %s: %s", j.Name, j.Waits.Kind, strings.ReplaceAll(j.Waits.Message, server, "SERVER")))
		}
	}
	return all
}

// node returns a node with so many CPUs.
func node(name string, cpus int) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: '%d', memory: 64Gi}}\n", name, cpus)
}

// group returns a PodGroup of a queue with pods of one CPU each, on a node if one is named.
func group(name, queue, class, on string, pods int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s}\nspec: {minMember: 1, queue: %s, priorityClassName: '%s'}\n", name, queue, class)
	for i := range pods {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s-%d, annotations: {scheduling.k8s.io/group-name: %s}}\n", name, i, name)
		fmt.Fprintf(&b, "spec: {schedulerName: volcano, priorityClassName: '%s', containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]", class)
		if on != "" {
			fmt.Fprintf(&b, ", nodeName: %s}\nstatus: {phase: Running}\n", on)
		} else {
			b.WriteString("}\n")
		}
	}
	return b.String()
}

func queue(name string) string {
	return fmt.Sprintf("---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\nspec: {weight: 1}\n", name)
}
