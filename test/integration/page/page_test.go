// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page_test opens the page of "kubectl caldera ui" in a real Chromium, on a cluster with a real scheduler and 1,000 jobs, and compares what it
// shows with what the cluster's API says.
package page_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const (
	// mostLayouts is how often the browser may work out where things are while it draws 1,000 jobs: not for each of them.
	mostLayouts = 20
	// mostAttempts is how often the time is measured that it takes.
	mostAttempts = 10
)

var (
	// pictures: screenshots of the views are written into docs/pictures. It takes some minutes more, for the history to be one.
	pictures = flag.Bool("pictures", false, "write pictures of the page into docs/pictures")
	// drawnWithin judges a time that depends on the machine, and on what else runs there.
	drawnWithin = flag.Duration("drawn-within", 0, "within what time 1,000 jobs are to be on the screen, from when the page has them; 0: it is told, and not judged")
)

var everything = labels.Everything()

// views are all of the page, with what a picture is called.
var views = []struct{ hash, view, picture string }{
	{"#/queues", "queues", "queues"},
	{"#/jobs", "jobs", "jobs"},
	{"#/jobs/vision/job-0240", "job", "job"},
	{"#/evictions", "evictions", "evictions"},
	{"#/nodes", "nodes", "nodes"},
	{"#/fairness", "fairness", "fairness"},
}

// scenes is what all parts of the test have.
type scenes struct {
	*stage
	*browser
	// axe is the source of axe-core.
	axe string
}

func TestThePageShowsTheCluster(t *testing.T) {
	t.Parallel()
	browserPath := chromium(t)
	source := axe(t)
	s := newStage(t)
	s.play(t)
	s.rest(t)
	binary := command(t)
	sc := &scenes{stage: s, axe: source, browser: newViews(t, browserPath, serve(t, binary, s.Kubeconfig))}
	for _, part := range []struct {
		name string
		run  func(*testing.T, *scenes)
	}{
		{"queues are those of the API", queuesAreShown},
		{"a queue leads to its jobs, and a job to what would have it start", aJobIsExplained},
		{"1,000 jobs are drawn at once", jobsAreDrawn},
		{"jobs are narrowed down", jobsAreNarrowedDown},
		{"evictions are those of the API", evictionsAreShown},
		{"nodes are those of the API", nodesAreShown},
		{"histories are those of the API", historiesAreShown},
		{"a keyboard is enough", keyboard},
		{"what is focused, selected and scrolled to stays", refreshed},
		{"colours are remembered", colours},
		{"whatever a name is, it is text", names},
		{"every view is accessible, in light and dark", everyViewIsAccessible},
		{"what there is none of looks right, too", nothing},
	} {
		t.Run(part.name, func(t *testing.T) {
			part.run(t, sc)
			if troubles := sc.take(); len(troubles) > 0 {
				t.Errorf("the page has\n%s", strings.Join(troubles, "\n"))
			}
		})
	}
	if *pictures && !t.Failed() {
		sc.paint(t)
	}
	t.Run("no scheduler leads", func(t *testing.T) { nobodyLeads(t, sc) })
	t.Run("who may see one namespace sees it", func(t *testing.T) {
		oneNamespaceIsSeen(t, &scenes{stage: s, axe: source, browser: newViews(t, browserPath, serve(t, binary, s.viewer(t, "web")))})
	})
}

// dash is what is not there, as the page writes it.
func dash(s string) string { return cmp.Or(s, "–") }

func amount(list corev1.ResourceList, missing string) string {
	q, ok := list[gpu]
	switch {
	case ok:
		return q.String()
	case len(list) > 0:
		return "0"
	}
	return missing
}

// queuesAreShown compares all rows of queues with the API.
func queuesAreShown(t *testing.T, s *scenes) {
	s.open(t, "#/queues", "queues")
	env.Eventually(t, patience, func() string {
		want := map[string][]string{}
		for _, q := range read[v1alpha1.QueueViewList](t, s.stage, v1alpha1.QueueViews).Items {
			limit := ""
			if l, ok := q.Status.Limit[gpu]; ok {
				limit = l.String()
			}
			want[q.Name] = []string{
				amount(q.Status.Held, "0"), dash(amount(q.Status.Due, "")), dash(limit), strconv.Itoa(int(q.Status.Jobs.Running)), strconv.Itoa(int(q.Status.Waiting)),
			}
		}
		got := map[string][]string{}
		for _, r := range s.rows(t) {
			got[strings.TrimLeft(r[0], "\u2003\u2514\u2009")] = r[2:7]
		}
		return gocmp.Diff(want, got)
	})
	if head := value[string](t, s.browser, `document.querySelector("main thead").rows[0].cells[2].textContent`); head != "gpu held" {
		t.Errorf("what is shown is %q, want GPUs", head)
	}
	order := []string{"batch", "nightly", "sweeps", "default", "production"}
	var got []string
	for _, r := range s.rows(t) {
		got = append(got, strings.TrimLeft(r[0], "\u2003\u2514\u2009"))
	}
	if i := slices.Index(got, "batch"); i < 0 || !slices.Equal(got[i:i+len(order)], order) {
		t.Errorf("the queues are %q, want each after the one above it", got)
	}
}

// follow clicks on the first link of a text.
func (s *scenes) follow(t *testing.T, text string) {
	t.Helper()
	s.do(t, chromedp.Click(fmt.Sprintf(`//main//a[text()=%q]`, text)))
}

// aJobIsExplained clicks through: a queue, its jobs, one of them, and what would have it start.
func aJobIsExplained(t *testing.T, s *scenes) {
	s.open(t, "#/queues", "queues")
	s.follow(t, "vision")
	s.shown(t, "jobs")
	want := 0
	for _, j := range read[v1alpha1.JobViewList](t, s.stage, v1alpha1.JobViews).Items {
		if j.Status.Queue == "vision" {
			want++
		}
	}
	rows := s.rows(t)
	if len(rows) != want || slices.ContainsFunc(rows, func(r []string) bool { return r[2] != "vision" }) {
		t.Fatalf("queue vision has %d rows, want %d, all of it", len(rows), want)
	}
	s.follow(t, "job-0240")
	s.shown(t, "job")
	var j v1alpha1.JobView
	for _, v := range read[v1alpha1.JobViewList](t, s.stage, v1alpha1.JobViews).Items {
		if v.Name == "job-0240" {
			j = v
		}
	}
	text := value[string](t, s.browser, `document.querySelector("main").innerText`)
	for _, part := range append(strings.Split(j.Status.Reason.Message, "; "), "PodGroup vision/job-0240, queue vision: waits ", j.Status.Reason.Type,
		"of its queue, which is") {
		if !strings.Contains(text, part) {
			t.Errorf("the page of the job does not say %q:\n%s", part, text)
		}
	}
	held := value[[][]string](t, s.browser, `[...document.querySelectorAll("main table")[1].tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent))`)
	if diff := gocmp.Diff([][]string{{"cpu", "0", "64"}, {"nvidia.com/gpu", "0", "16"}, {"pods", "0", "1"}}, held); diff != "" {
		t.Errorf("what its pods ask for (-want,+got)\n%s", diff)
	}
	s.do(t, chromedp.Click(chromedp.CSS("button.main")))
	s.eventually(t, `(r => r === null || r.hidden ? "nothing is told" : "")(document.querySelector(".remedies"))`)
	// Each of its pods asks for 16 GPUs, and nodes have 8.
	if told := value[string](t, s.browser, `document.querySelector(".remedies").innerText`); !strings.Contains(told, "the node has 8") {
		t.Errorf("what would have it start is\n%s", told)
	} else {
		t.Logf("what would have it start is\n%s", told)
	}
}

// layouts is how often the browser has worked out where on the page things are.
func (b *browser) layouts(t *testing.T) int {
	t.Helper()
	for _, m := range call(t, b, performance.GetMetrics, cdp.Empty{}).Metrics {
		if m.Name == "LayoutCount" {
			return int(m.Value)
		}
	}
	t.Fatal("the browser does not count its layouts")
	return 0
}

// jobsAreDrawn compares 1,000 jobs with the API. The browser is not to place each of them by itself. How long it takes is measured in the page; what
// else runs on the machine makes it longer, and never shorter, so that one of some attempts has to do where it is judged.
func jobsAreDrawn(t *testing.T, s *scenes) {
	var took []time.Duration
	for len(took) == 0 || len(took) < mostAttempts && slices.Min(took) > *drawnWithin && *drawnWithin > 0 {
		s.open(t, "#/queues", "queues")
		s.do(t, script(`performance.clearMeasures()`))
		before := s.layouts(t)
		s.open(t, "#/jobs", "jobs")
		s.eventually(t, `performance.getEntriesByName("render:jobs").length > 0 ? "" : "nothing is drawn yet"`)
		if n := s.layouts(t) - before; n > mostLayouts {
			t.Errorf("the browser has placed things %d times, want %d at most", n, mostLayouts)
		} else {
			t.Logf("the browser has placed things %d times", n)
		}
		milliseconds := value[float64](t, s.browser, `performance.getEntriesByName("render:jobs")[0].duration`)
		took = append(took, time.Duration(milliseconds*float64(time.Millisecond)).Round(time.Millisecond))
	}
	rows := s.rows(t)
	t.Logf("%d jobs were drawn in %s", len(rows), took)
	if len(rows) != 1000 {
		t.Errorf("%d jobs are shown, want 1,000", len(rows))
	}
	if *drawnWithin > 0 && slices.Min(took) > *drawnWithin {
		t.Errorf("from their data to the screen it took %s, want %s at most", took, *drawnWithin)
	}
	want := map[string][]string{}
	for _, j := range read[v1alpha1.JobViewList](t, s.stage, v1alpha1.JobViews).Items {
		reason, place := "–", "–"
		if r := j.Status.Reason; r != nil {
			reason = r.Type
		}
		if p := j.Status.Position; p != nil {
			place = fmt.Sprintf("%d/%d", p.InQueue, p.OfQueue)
		}
		pods := fmt.Sprintf("%d/%d", j.Status.Pods.Bound+j.Status.Pods.Running+j.Status.Pods.Succeeded, max(j.Status.MinMember, j.Status.Pods.Total))
		want[j.Namespace+"/"+j.Name] = []string{j.Status.Queue, place, string(j.Status.Phase), pods, reason}
	}
	wrong := 0
	for _, r := range rows {
		got := []string{r[2], r[3], r[4], r[5], r[7]}
		if diff := gocmp.Diff(want[r[0]+"/"+r[1]], got); diff != "" && wrong < 5 {
			wrong++
			t.Errorf("job %s/%s (-want,+got)\n%s", r[0], r[1], diff)
		}
	}
	count := value[string](t, s.browser, `document.querySelector(".count").textContent`)
	if said := fmt.Sprintf("the first 1000 of %d: narrow them down to see others", len(want)); count != said {
		t.Errorf("the page says %q, want %q", count, said)
	}
}

// jobsAreNarrowedDown filters by each of the fields.
func jobsAreNarrowedDown(t *testing.T, s *scenes) {
	all := read[v1alpha1.JobViewList](t, s.stage, v1alpha1.JobViews).Items
	counted := func(matches func(j *v1alpha1.JobView) bool) (n int) {
		for i := range all {
			if matches(&all[i]) {
				n++
			}
		}
		return n
	}
	says := func(n int) {
		t.Helper()
		s.eventually(t, fmt.Sprintf(`((rows, count) => rows === %[1]d && count === "%[1]d of %[2]d" ? "" : rows + " rows, " + count + ", want %[1]d")
			(document.querySelector("main tbody").rows.length, document.querySelector(".count").textContent)`, n, len(all)))
	}
	s.open(t, "#/jobs", "jobs")
	s.do(t, chromedp.SendKeys(chromedp.CSS(`input[type="search"]`), "JOB-02"))
	says(counted(func(j *v1alpha1.JobView) bool { return strings.Contains(j.Name, "job-02") }))
	choose := func(label, value string) {
		t.Helper()
		s.do(t, script(fmt.Sprintf(`(() => {
			const select = [...document.querySelectorAll("main label")].find((l) => l.firstChild.textContent === %q).querySelector("select");
			select.value = %q;
			select.dispatchEvent(new Event("change"));
		})()`, label, value)))
	}
	choose("Namespace", "vision")
	says(counted(func(j *v1alpha1.JobView) bool { return strings.Contains(j.Name, "job-02") && j.Namespace == "vision" }))
	s.open(t, "#/jobs", "jobs")
	reasons := map[string]bool{}
	for i := range all {
		if r := all[i].Status.Reason; r != nil {
			reasons[r.Type] = true
		}
	}
	if len(reasons) < 4 {
		t.Errorf("jobs wait for %v, want more kinds of reasons to tell apart", reasons)
	}
	for reason := range reasons {
		if n := counted(func(j *v1alpha1.JobView) bool { return j.Status.Reason != nil && j.Status.Reason.Type == reason }); n < 1000 {
			choose("Reason", reason)
			says(n)
		}
	}
	// Of a queue with queues below it, theirs are shown.
	s.open(t, "#/jobs?queue=research", "jobs")
	says(counted(func(j *v1alpha1.JobView) bool { return j.Status.Queue == "vision" || j.Status.Queue == "language" }))
	s.open(t, "#/jobs?queue=serving", "jobs")
	s.do(t, chromedp.Click(chromedp.CSS(`input[type="checkbox"]`)))
	says(counted(func(j *v1alpha1.JobView) bool { return j.Status.Queue == "serving" && j.Status.Waiting }))
	// What was chosen is in the address.
	if hash := value[string](t, s.browser, `location.hash`); hash != "#/jobs?queue=serving&waiting=yes" {
		t.Errorf("the address has %q", hash)
	}
	s.do(t, script(`history.back()`))
	s.eventually(t, `location.hash === "#/jobs?queue=research" ? "" : location.hash`)
	says(counted(func(j *v1alpha1.JobView) bool { return j.Status.Queue == "vision" || j.Status.Queue == "language" }))
}

// evictionsAreShown compares decisions with the API, and opens one.
func evictionsAreShown(t *testing.T, s *scenes) {
	s.open(t, "#/evictions", "evictions")
	decisions := read[v1alpha1.EvictionDecisionList](t, s.stage, v1alpha1.EvictionDecisions).Items
	rows := value[[][]string](t, s.browser, `[...document.querySelectorAll("main table")[0].tBodies[0].rows].map((r) => [...r.cells].slice(0, 7).map((c) => c.textContent))`)
	if len(rows) != len(decisions) || len(rows) < 5 {
		t.Fatalf("%d decisions are shown, and there are %d, want 5 or more", len(rows), len(decisions))
	}
	for i := range decisions {
		d := &decisions[i].Status
		evicted := 0
		from := map[string]bool{}
		for _, v := range d.Victims {
			from[v.Job.Queue] = true
			if v.Evicted {
				evicted++
			}
		}
		want := []string{d.Action, d.Job.Namespace + "/" + d.Job.Name, d.Job.Queue, "sweeps", fmt.Sprintf("%d/%d", evicted, len(d.Victims))}
		if diff := gocmp.Diff(want, rows[i][1:6]); diff != "" || !strings.HasPrefix(rows[i][6], d.Outcome) {
			t.Errorf("decision %s is shown as %q (-want,+got)\n%s", decisions[i].Name, rows[i], diff)
		}
	}
	if lines := value[int](t, s.browser, `document.querySelectorAll("svg line.taking").length`); lines != len(decisions) {
		t.Errorf("the picture has %d decisions, want %d", lines, len(decisions))
	}
	s.do(t, chromedp.Click(chromedp.CSS("main tbody details summary")))
	victims := value[int](t, s.browser, `document.querySelector("details[open] tbody").rows.length`)
	if victims != len(decisions[0].Status.Victims) {
		t.Errorf("the newest decision has %d victims, want %d", victims, len(decisions[0].Status.Victims))
	}
	s.again(t)
	if !value[bool](t, s.browser, `document.querySelector("main tbody details").open`) {
		t.Error("what was opened has closed")
	}
}

// nodesAreShown compares what is free with what pods of the API hold.
func nodesAreShown(t *testing.T, s *scenes) {
	s.open(t, "#/nodes", "nodes")
	env.Eventually(t, patience, func() string {
		pods, err := s.Pods.List(everything)
		if err != nil {
			return err.Error()
		}
		held := map[string]int64{}
		for _, p := range pods {
			if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
				q := p.Spec.Containers[0].Resources.Requests[gpu]
				held[p.Spec.NodeName] += q.Value()
			}
		}
		want := map[string][]string{}
		for _, n := range s.nodes(t) {
			all := n.Status.Allocatable[gpu]
			problem := "–"
			if n.Spec.Unschedulable {
				problem = "cordoned"
			}
			want[n.Name] = []string{strconv.FormatInt(all.Value()-held[n.Name], 10), all.String(), problem}
		}
		got := map[string][]string{}
		for _, r := range s.rows(t) {
			got[r[0]] = []string{r[1], r[2], r[4]}
		}
		return gocmp.Diff(want, got)
	})
	if n := value[int](t, s.browser, `document.querySelectorAll(".strip li.trouble").length`); n != 1 {
		t.Errorf("%d nodes of the strip take no pods, want 1", n)
	}
}

// historiesAreShown compares the samples with those of the API.
func historiesAreShown(t *testing.T, s *scenes) {
	s.open(t, "#/fairness", "fairness")
	// The first sample was taken at the start, and the second one half a minute later.
	s.eventually(t, `document.querySelectorAll("svg path.area").length >= 3 ? "" : "no areas are drawn: " + document.querySelector("main").innerText`)
	s.do(t, chromedp.Click(chromedp.CSS("details > summary")))
	env.Eventually(t, patience, func() string {
		want := map[string][]string{}
		for _, h := range read[v1alpha1.QueueHistoryList](t, s.stage, v1alpha1.QueueHistories).Items {
			if h.Status.Parent == "root" {
				for _, sample := range slices.Backward(h.Status.Samples) {
					want[h.Name] = append(want[h.Name], amount(sample.Held, "0"))
				}
			}
		}
		table := value[[][]string](t, s.browser, `[...document.querySelectorAll("details table")[0].rows].map((r) => [...r.cells].map((c) => c.textContent))`)
		got := map[string][]string{}
		for _, row := range table[1:] {
			for i, name := range table[0][1:] {
				if row[i+1] != "–" {
					got[name] = append(got[name], row[i+1])
				}
			}
		}
		return gocmp.Diff(want, got)
	})
	s.follow(t, "research")
	s.eventually(t, `document.querySelectorAll("svg path.area").length === 2 ? "" : "the queues below research are not drawn"`)
}

// keyboard opens the page of a job without a mouse.
func keyboard(t *testing.T, s *scenes) {
	s.do(t, script(`location.hash = "#/queues"`), chromedp.Reload())
	s.shown(t, "queues")
	focused := func() string {
		return value[string](t, s.browser, `document.activeElement.id || document.activeElement.textContent || document.activeElement.tagName`)
	}
	var way []string
	for range 40 {
		s.do(t, chromedp.KeyEvent(kb.Tab))
		way = append(way, focused())
		if way[len(way)-1] == "vision" {
			break
		}
	}
	if want := []string{"Skip to the content", "Queues", "Jobs", "Evictions", "Nodes", "Fairness", "theme"}; !slices.Equal(way[:len(want)], want) || way[len(way)-1] != "vision" {
		t.Fatalf("Tab leads to %q, want %q, and to queue vision in the end", way, want)
	}
	if outline := value[string](t, s.browser, `getComputedStyle(document.activeElement).outlineStyle`); outline != "solid" {
		t.Errorf("what has the focus has the outline %q", outline)
	}
	s.do(t, chromedp.KeyEvent(kb.Enter))
	s.shown(t, "jobs")
	if got := value[string](t, s.browser, `document.activeElement.id`); got != "main" {
		t.Errorf("in another view the focus is at %q, want the content", got)
	}
	if hash := value[string](t, s.browser, `location.hash`); hash != "#/jobs?queue=vision" {
		t.Errorf("Enter leads to %q", hash)
	}
}

// refreshed looks at what a refresh must not take away.
func refreshed(t *testing.T, s *scenes) {
	s.open(t, "#/jobs", "jobs")
	s.do(t, script(`(() => {
		const row = document.querySelector("main tbody").rows[700];
		row.scrollIntoView();
		row.querySelector("a").focus({ preventScroll: true });
		getSelection().selectAllChildren(row.cells[0]);
		window.was = { element: document.activeElement, top: scrollY, text: String(getSelection()) };
	})()`))
	s.again(t)
	got := value[[]bool](t, s.browser, `[document.activeElement === was.element && was.element.isConnected, scrollY === was.top && scrollY > 1000, String(getSelection()) === was.text && was.text !== ""]`)
	if !slices.Equal(got, []bool{true, true, true}) {
		t.Errorf("focus, scroll and selection stay: %v", got)
	}
}

// colours are chosen by a button, else by the system's.
func colours(t *testing.T, s *scenes) {
	for _, system := range []string{"light", "dark"} {
		s.prefers(t, system)
		s.do(t, script(`localStorage.clear()`), chromedp.Reload())
		s.shown(t, value[string](t, s.browser, `document.querySelector("main").dataset.view ?? "jobs"`))
		if got := value[string](t, s.browser, `document.documentElement.dataset.theme`); got != system {
			t.Errorf("where the system is %s the page is %s", system, got)
		}
	}
	dark := value[string](t, s.browser, `getComputedStyle(document.body).backgroundColor`)
	s.do(t, chromedp.Click(chromedp.CSS("#theme")), chromedp.Reload())
	s.shown(t, "jobs")
	if got := value[string](t, s.browser, `document.documentElement.dataset.theme + getComputedStyle(document.body).backgroundColor`); !strings.HasPrefix(got, "light") || strings.HasSuffix(got, dark) {
		t.Errorf("what the button has chosen is forgotten: the page is %s", got)
	}
}

// names has the page be told of names that no object of a cluster can have.
func names(t *testing.T, s *scenes) {
	evil := `<img src=x onerror="window.harmed = true">`
	row := map[string]any{
		"namespace": evil, "name": evil, "queue": evil, "place": "1/1", "phase": "Pending", "pods": "0/1", "waits": nil, "reason": evil, "message": "<script>window.harmed = true</script>",
	}
	none := []any{}
	s.pretend(t, map[string]any{"jobs": map[string]any{"note": evil, "all": 1, "found": 1, "jobs": []any{row}, "namespaces": none, "queues": none, "reasons": []any{map[string]any{"name": evil, "count": 1}}}})
	defer s.honest(t)
	s.open(t, "#/jobs", "jobs")
	rows := s.rows(t)
	if len(rows) != 1 || rows[0][0] != evil || rows[0][1] != evil || rows[0][2] != evil || rows[0][7] != evil {
		t.Errorf("the rows are %q", rows)
	}
	if value[bool](t, s.browser, `window.harmed === true || document.querySelector("main img, main script") !== null`) {
		t.Error("a name has become a part of the page")
	}
	s.do(t, chromedp.Click(chromedp.CSS(`main tbody a`)))
	s.eventually(t, `location.hash.startsWith("#/jobs/%3Cimg") ? "" : location.hash`)
	s.eventually(t, `document.querySelector("h1").textContent.startsWith("<img") ? "" : document.querySelector("h1").textContent`)
	s.open(t, "#/queues", "queues")
	// The API server refuses to look for such a job; the browser notes the refusal.
	for _, trouble := range s.take() {
		if !strings.Contains(trouble, "Failed to load resource") {
			t.Error(trouble)
		}
	}
}

// everyViewIsAccessible has axe-core look at all views.
func everyViewIsAccessible(t *testing.T, s *scenes) {
	for _, theme := range []string{"light", "dark"} {
		s.theme(t, theme)
		for _, v := range views {
			s.open(t, v.hash, v.view)
			what := v.view + ", " + theme
			if passed := s.accessible(t, s.axe, what); passed > 0 {
				t.Logf("%s: %d rules of axe-core have passed", what, passed)
			}
			if wide := value[int](t, s.browser, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
				t.Errorf("%s: the page is %d pixels too wide", what, wide)
			}
		}
	}
	s.theme(t, "light")
}

// nothing has the page show what there is none of, and names that are as long as names can be.
func nothing(t *testing.T, s *scenes) {
	none, long := []any{}, strings.Repeat("a-very-long-name", 16)[:253]
	gpus := []string{"nvidia.com/gpu"}
	seven := map[string]any{"text": "7", "value": 7}
	odd := map[string]any{"name": long, "depth": 1, "inner": false, "held": seven, "due": seven, "limit": nil, "waiting": 1, "running": 0, "oldest": nil, "state": "Left out: " + long, "fault": true}
	job := map[string]any{"namespace": long[:63], "name": long, "queue": long, "place": "1/1", "phase": "Pending", "pods": "0/1", "waits": nil, "reason": "QueueFull", "message": long}
	at := "2026-01-01T12:00:00Z"
	made := map[string]any{
		"id": "1", "when": map[string]any{"ago": "3m", "at": at}, "action": "reclaim", "for": map[string]any{"namespace": long[:63], "name": long, "queue": long}, "from": []string{long},
		"evicted": "0/0", "outcome": "Wasted", "took": "1m", "problem": long, "rules": none, "victims": none, "others": 3, "kept": none,
	}
	for _, c := range []struct {
		name, hash, view string
		answers          map[string]any
		says             string
	}{
		{"no queues", "#/queues", "queues", map[string]any{"queues": map[string]any{"note": "", "resource": "cpu", "resources": none, "queues": none}}, "There are no queues."},
		{"no jobs", "#/jobs", "jobs", map[string]any{"jobs": map[string]any{"note": "", "all": 0, "found": 0, "jobs": none, "namespaces": none, "queues": none, "reasons": none}}, "There are no jobs."},
		{"no evictions", "#/evictions", "evictions", map[string]any{"evictions": map[string]any{"note": "", "decisions": none}}, "No evictions are remembered."},
		{"no nodes", "#/nodes", "nodes", map[string]any{"nodes": map[string]any{"resource": "cpu", "resources": []string{"cpu", "memory"}, "nodes": none}}, "There are no nodes."},
		{"no history", "#/fairness", "fairness", map[string]any{"history": map[string]any{"resource": "cpu", "resources": none, "times": none, "queues": none}}, "There is no history yet."},
		{"one sample", "#/fairness", "fairness", map[string]any{"history": map[string]any{
			"resource": gpus[0], "resources": gpus, "times": []string{at}, "queues": []any{map[string]any{"name": long, "held": []int{3}, "due": []any{nil}}},
		}}, "There is one sample yet."},
		{"a long history", "#/fairness", "fairness", map[string]any{"history": map[string]any{
			"resource": gpus[0], "resources": gpus, "times": []string{at, "2026-01-01T12:30:00Z"}, "queues": []any{map[string]any{"name": long, "held": []int{3, 4}, "due": []any{nil, 5}}},
		}}, "Each sample"},
		{"long names of queues", "#/queues", "queues", map[string]any{"queues": map[string]any{"note": "", "resource": gpus[0], "resources": gpus, "queues": []any{odd}}}, "Left out"},
		{"long names of jobs", "#/jobs", "jobs", map[string]any{"jobs": map[string]any{
			"note": "", "all": 1, "found": 1, "jobs": []any{job}, "namespaces": []any{map[string]any{"name": long[:63], "count": 1}},
			"queues": []any{map[string]any{"name": long, "count": 1}}, "reasons": none,
		}}, "QueueFull"},
		{"long names of evictions", "#/evictions", "evictions", map[string]any{"evictions": map[string]any{"note": "", "decisions": []any{made}}}, "3 pods of other namespaces"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.pretend(t, c.answers)
			defer s.honest(t)
			for _, theme := range []string{"light", "dark"} {
				s.theme(t, theme)
				s.open(t, c.hash, c.view)
				if text := value[string](t, s.browser, `document.querySelector("main").innerText`); !strings.Contains(text, c.says) {
					t.Errorf("the page does not say %q:\n%s", c.says, text)
				}
				s.accessible(t, s.axe, c.name+", "+theme)
				if wide := value[int](t, s.browser, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
					t.Errorf("the page is %d pixels too wide", wide)
				}
			}
			if dir := os.Getenv("CALDERA_PAGE_ODD"); dir != "" {
				s.screenshot(t, filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-")+".png"))
			}
		})
	}
	s.theme(t, "light")
}

// nobodyLeads: the page says so in kubectl's words, keeps what it has shown, and goes on when there is a scheduler again.
func nobodyLeads(t *testing.T, s *scenes) {
	s.open(t, "#/queues", "queues")
	before := len(s.rows(t))
	if _, err := s.process.Stop(); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, `(said => said.includes("ServiceUnavailable") ? "" : "the page says " + said)(document.querySelector(".error").textContent)`)
	if got := len(s.rows(t)); got != before {
		t.Errorf("%d queues are left, want the %d of before", got, before)
	}
	s.do(t, chromedp.Click(chromedp.CSS(`nav a[href="#/nodes"]`)))
	s.shown(t, "nodes")
	if got := len(s.rows(t)); got != len(s.nodes(t)) {
		t.Errorf("without a scheduler %d nodes are shown, want %d", got, len(s.nodes(t)))
	}
	s.startScheduler()
	s.open(t, "#/queues", "queues")
	s.eventually(t, `(said => said === "" && document.querySelector("main tbody").rows.length > 0 ? "" : "the page says " + said)(document.querySelector(".error").textContent)`)
}

// oneNamespaceIsSeen: who may look into one namespace sees its jobs and queues, and is told what he may not see.
func oneNamespaceIsSeen(t *testing.T, s *scenes) {
	s.open(t, "#/queues", "queues")
	s.eventually(t, `(note => note === "You may not see all queues; these have jobs of namespace web." ? "" : "the note is " + note + ", " + document.querySelector(".error").textContent)(document.querySelector(".note").textContent)`)
	if text := value[string](t, s.browser, `document.querySelector("main table").textContent`); !strings.Contains(text, "serving") || strings.Contains(text, "vision") {
		t.Errorf("the queues are %s", text)
	}
	s.open(t, "#/jobs", "jobs")
	s.eventually(t, `document.querySelector("main tbody").rows.length > 0 ? "" : document.querySelector(".error").textContent`)
	if rows := s.rows(t); slices.ContainsFunc(rows, func(r []string) bool { return r[0] != "web" }) {
		t.Error("jobs of other namespaces are shown")
	}
	for hash, what := range map[string]string{
		"nodes":    `Error from server (Forbidden): reading nodes: nodes is forbidden: User "system:serviceaccount:web:viewer" cannot list resource "nodes"`,
		"fairness": `Error from server (Forbidden): queuehistories.visibility.caldera.dev is forbidden: User "system:serviceaccount:web:viewer" cannot list`,
	} {
		s.open(t, "#/"+hash, hash)
		if said := value[string](t, s.browser, `document.querySelector(".error").textContent`); !strings.HasPrefix(said, what) {
			t.Errorf("of %s the page says %q, want %q", hash, said, what)
		}
		s.accessible(t, s.axe, hash+" that may not be seen")
	}
	s.open(t, "#/jobs/web/job-0340", "job")
	s.do(t, chromedp.Click(chromedp.CSS("button.main")))
	s.eventually(t, `(r => r === null || r.hidden ? "nothing is told" : r.textContent.startsWith("What would have it start is told to who may list nodes") ? "" : r.textContent)(document.querySelector(".remedies"))`)
}

// paint writes a picture of each view, light and dark.
func (s *scenes) paint(t *testing.T) {
	t.Helper()
	// A history of some minutes in which something happens.
	s.live(t)
	for _, theme := range []string{"light", "dark"} {
		s.theme(t, theme)
		for _, v := range views {
			s.open(t, v.hash, v.view)
			s.do(t, script(`scrollTo(0, 0)`))
			if v.view == "job" {
				s.do(t, chromedp.Click(chromedp.CSS("button.main")))
				s.eventually(t, `(r => r === null || r.hidden ? "nothing is told" : "")(document.querySelector(".remedies"))`)
				s.do(t, script(`document.activeElement.blur()`))
			}
			s.screenshot(t, filepath.Join("..", "..", "..", "docs", "pictures", v.picture+"-"+theme+".png"))
		}
	}
}

// live has jobs end and start for some minutes.
func (s *scenes) live(t *testing.T) {
	t.Helper()
	for i, round := range []struct{ ends, namespace, queue string }{
		{"detector-a", "vision", "language"}, {"finetune", "ml", "serving"}, {"pretrain-7b", "ml", "training"}, {"ranker", "web", "vision"}, {"detector-b", "vision", "language"},
	} {
		s.end(t, round.namespace, round.ends)
		next := job("ml", fmt.Sprintf("next-%d", i), round.queue, 2, 2, 8)
		s.create(t, next)
		at := value[int](t, s.browser, `Date.now()`)
		s.open(t, "#/fairness", "fairness")
		s.eventually(t, fmt.Sprintf(`Date.now() > %d + 31000 ? "" : "more samples are awaited"`, at))
	}
}
