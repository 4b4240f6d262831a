// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/queues"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

const gpu = "nvidia.com/gpu"

func gpus(n string) corev1.ResourceList { return corev1.ResourceList{gpu: resource.MustParse(n)} }

var noon = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

func views() []queues.View {
	view := func(name, parent string, s v1alpha1.QueueViewStatus) queues.View {
		s.AsOf, s.Parent, s.State = noon, parent, "Open"
		return queues.View{Name: name, QueueViewStatus: &s}
	}
	return []queues.View{
		view("root", "", v1alpha1.QueueViewStatus{Held: gpus("7"), Due: gpus("8")}),
		view("lab", "root", v1alpha1.QueueViewStatus{Held: gpus("7"), Due: gpus("4"), Waiting: 2, WaitingSince: new(metav1.NewTime(noon.Add(-time.Hour)))}),
		view("day", "lab", v1alpha1.QueueViewStatus{Limit: gpus("6"), Jobs: v1alpha1.QueueJobs{Running: 3}}),
		view("web", "root", v1alpha1.QueueViewStatus{Fault: &v1alpha1.Reason{Message: "no"}}),
	}
}

func TestQueuesAreRowsInTheOrderOfTheTree(t *testing.T) {
	table := tableOf(views(), "")
	var got []string
	for _, q := range table.Queues {
		limit := "-"
		if q.Limit != nil {
			limit = fmt.Sprint(q.Limit.Value)
		}
		got = append(got, fmt.Sprintf("%s %d %t %s %s %d %d %q %t", q.Name, q.Depth, q.Inner, q.Held.Text, limit, q.Waiting, q.Running, q.State, q.Fault))
	}
	want := []string{
		`root 0 true 7 - 0 0 "Open" false`, `lab 1 true 7 - 2 0 "Open, borrows 3" false`, `day 2 false 0 6 0 3 "Open" false`, `web 1 false 0 - 0 0 "Left out: no" true`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
	if table.Resource != gpu || !slices.Equal(table.Resources, []string{gpu}) || table.Queues[1].Oldest.Ago != "60m" {
		t.Errorf("the table is %+v", table)
	}
}

func TestAQueueHasThoseBelowIt(t *testing.T) {
	for name, want := range map[string][]string{
		"root": {"day", "lab", "root", "web"}, "lab": {"day", "lab"}, "day": {"day"}, "web": {"web"}, "nobody": {"nobody"},
	} {
		var got []string
		for queue := range below(views(), name) {
			got = append(got, queue)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("queue %s has %q, want %q", name, got, want)
		}
	}
}

func TestJobsAreNarrowedDownAndCounted(t *testing.T) {
	var all []v1alpha1.JobView
	for i := range 1200 {
		j := v1alpha1.JobView{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprintf("train-%04d", i)}}
		j.Status.Queue, j.Status.AsOf = []string{"day", "web"}[i%2], noon
		if i%3 == 0 {
			j.Status.Waiting, j.Status.Reason = true, &v1alpha1.Reason{Type: "QueueFull", Message: "full"}
		}
		if i%4 == 0 {
			j.Namespace = "prod"
		}
		all = append(all, j)
	}
	for name, tc := range map[string]struct {
		filter       filter
		found, shown int
	}{
		"all":               {filter{}, 1200, mostJobs},
		"of a namespace":    {filter{namespace: "prod"}, 300, 300},
		"of queues":         {filter{queues: map[string]bool{"day": true, "lab": true}}, 600, 600},
		"for a reason":      {filter{reason: "QueueFull"}, 400, 400},
		"that wait":         {filter{waiting: true}, 400, 400},
		"by name":           {filter{text: "TRAIN-11"}, 100, 100},
		"by their full one": {filter{text: "prod/train-0000"}, 1, 1},
		"by all of it":      {filter{namespace: "prod", queues: map[string]bool{"day": true}, reason: "QueueFull", text: "train-00", waiting: true}, 9, 9},
		"that there are no": {filter{reason: "QueueClosed"}, 0, 0},
	} {
		table := jobsOf(slices.Clone(all), &tc.filter)
		if table.All != 1200 || table.Found != tc.found || len(table.Jobs) != tc.shown {
			t.Errorf("%s: %d of %d are found, and %d are shown; want %d, %d", name, table.Found, table.All, len(table.Jobs), tc.found, tc.shown)
		}
		if diff := cmp.Diff([]counted{{"ml", 900}, {"prod", 300}}, table.Namespaces); diff != "" {
			t.Errorf("%s: namespaces (-want,+got)\n%s", name, diff)
		}
	}
}

func TestNodesHaveWhatIsFree(t *testing.T) {
	node := func(name, devices string, change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{gpu: resource.MustParse(devices), "cpu": resource.MustParse("8")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}}
		if change != nil {
			change(n)
		}
		return n
	}
	nodes := []*corev1.Node{
		node("b", "8", nil), node("a", "8", func(n *corev1.Node) { n.Spec.Unschedulable = true }), node("c", "2", func(n *corev1.Node) { n.Status.Conditions = nil }),
	}
	held := map[string]*load{}
	pod := func(node, devices string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: gpus(devices)}}}}}
	}
	for _, p := range []*corev1.Pod{pod("b", "3"), pod("b", "1"), pod("c", "4"), pod("", "8")} {
		add(held, p)
	}
	var got []string
	table := nodesOf(nodes, held, "")
	for _, n := range table.Nodes {
		got = append(got, fmt.Sprintf("%s: %s of %s, %d pods, %q", n.Name, n.Free.Text, n.Allocatable.Text, n.Pods, n.Problem))
	}
	want := []string{`a: 8 of 8, 0 pods, "cordoned"`, `b: 4 of 8, 2 pods, ""`, `c: 0 of 2, 1 pods, "not ready"`}
	if diff := cmp.Diff(want, got); diff != "" || table.Resource != gpu {
		t.Errorf("by %s (-want,+got)\n%s", table.Resource, diff)
	}
	for _, n := range nodes {
		delete(n.Status.Allocatable, gpu)
	}
	if table := nodesOf(nodes, held, ""); table.Resource != "cpu" {
		t.Errorf("nodes without devices are looked at by %s, want cpu", table.Resource)
	}
}

func TestAQueueThatWasNotThereHasAGap(t *testing.T) {
	at := func(n int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(n) * 30 * time.Second)) }
	c := chartOf([]v1alpha1.QueueHistory{
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: v1alpha1.QueueHistoryStatus{Samples: []v1alpha1.QueueSample{{Time: at(0), Held: gpus("1")}, {Time: at(1), Held: gpus("2"), Due: gpus("4")}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: v1alpha1.QueueHistoryStatus{Samples: []v1alpha1.QueueSample{{Time: at(1), Held: gpus("3"), Due: gpus("4")}, {Time: at(2)}}}},
	}, "")
	text, err := json.Marshal(c.Queues)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"name":"a","held":[1,2,null],"due":[null,4,null]},{"name":"b","held":[null,3,0],"due":[null,4,null]}]`
	if string(text) != want || len(c.Times) != 3 || c.Resource != gpu {
		t.Errorf("by %s, at %v: %s, want %s", c.Resource, c.Times, text, want)
	}
}

// A search takes a core of the machine while it lasts.
func TestOneSearchAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		going := make(chan struct{})
		q := oneAtATime(func(context.Context, url.Values) (any, error) {
			<-going
			return "found", nil
		})
		first := make(chan any)
		go func() {
			found, _ := q(t.Context(), nil)
			first <- found
		}()
		synctest.Wait()
		if _, err := q(t.Context(), nil); !errors.Is(err, errBusy) || code(err) != http.StatusTooManyRequests {
			t.Errorf("a second one is answered by %v", err)
		}
		close(going)
		if got := <-first; got != "found" {
			t.Errorf("the first one is answered by %v", got)
		}
		if _, err := q(t.Context(), nil); err != nil {
			t.Errorf("after it, one is answered by %v", err)
		}
	})
}

func TestWhatFailsIsToldInKubectlsWords(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "visibility.caldera.dev", Resource: "jobviews"}, "", errors.New("no"))
	for name, tc := range map[string]struct {
		err  error
		code int
		text string
	}{
		"a right that is missing": {fmt.Errorf("reading jobs: %w", forbidden), 403, `Error from server (Forbidden): reading jobs: jobviews.visibility.caldera.dev is forbidden: no`},
		"anything else":           {errors.New("no way"), 502, "error: no way"},
	} {
		w := httptest.NewRecorder()
		answer(func(context.Context, url.Values) (any, error) { return nil, tc.err }, time.Minute)(w, httptest.NewRequest("GET", "/api/jobs", http.NoBody))
		var said problem
		if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || w.Code != tc.code || said.Error != tc.text {
			t.Errorf("%s: the answer is %d %q, want %d %q", name, w.Code, w.Body, tc.code, tc.text)
		}
	}
}

// TestThePageIsWhole: what files name is there, nothing is from elsewhere, and nothing is written as HTML.
func TestThePageIsWhole(t *testing.T) {
	handler := newPages(&source{})
	for _, target := range []string{"/", "/app.js", "/style.css", "/icon.svg", "/api/nothing"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", target, http.NoBody))
		if want := map[bool]int{true: 404, false: 200}[target == "/api/nothing"]; w.Code != want {
			t.Errorf("%s is answered by %d, want %d", target, w.Code, want)
		}
	}
	named := regexp.MustCompile(`(?:from|href=|src=) ?"(?:\./)?([a-z.]+\.(?:js|css|svg))"`)
	err := fs.WalkDir(static, "static", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(static, file)
		if err != nil {
			return err
		}
		for _, m := range named.FindAllStringSubmatch(string(data), -1) {
			if _, err := fs.Stat(static, path.Join("static", m[1])); err != nil {
				t.Errorf("%s names %s: %v", file, m[1], err)
			}
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "https://", "<style", "javascript:"} {
			if strings.Contains(string(data), bad) {
				t.Errorf("%s has %s", file, bad)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhereThePageIsIsChecked(t *testing.T) {
	for port, want := range map[string]string{"70000": "--port is 70000: use a port from 1 to 65535, or 0 for a free one", "-1": "--port is -1"} {
		cmd := New()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"--port", port, "--server", "127.0.0.1:1"})
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--port %s is answered by %v, want %q", port, err, want)
		}
	}
}
