// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// rewrite writes testdata anew, once somebody has read what changed and the code follows it: docs/upstream-contract.md says how.
var rewrite = flag.Bool("rewrite", false, "accept what upstream is now")

// wantFile compares lines with those of a file of testdata.
func wantFile(t *testing.T, name string, got []string, advice string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	text := strings.Join(got, "\n") + "\n"
	if *rewrite {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := changes(strings.Split(string(want), "\n"), strings.Split(text, "\n")); len(diff) > 0 {
		t.Errorf("Kubernetes is not what this module relies on (-want,+got):\n%s\n%s", strings.Join(diff, "\n"), advice)
	}
}

// changes are the whole lines that only one of two texts has: each names what has changed.
func changes(want, got []string) []string {
	var diff []string
	for _, l := range want {
		if !slices.Contains(got, l) {
			diff = append(diff, "-"+l)
		}
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			diff = append(diff, "+"+l)
		}
	}
	slices.SortStableFunc(diff, func(a, b string) int { return strings.Compare(a[1:], b[1:]) })
	return diff
}

// directory is where the source of a package is.
func directory(t *testing.T, pkg string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		t.Fatalf("looking for package %s: %v", pkg, err)
	}
	return strings.TrimSpace(string(out))
}

// declarations are the functions, methods, types and constants of a directory's package, without comments, by their names.
func declarations(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	set := token.NewFileSet()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			for name, node := range named(d) {
				var text bytes.Buffer
				if err := printer.Fprint(&text, token.NewFileSet(), node); err != nil {
					t.Fatal(err)
				}
				found[name] = text.String()
			}
		}
	}
	return found
}

// named are the names that a declaration declares. A method has its receiver's type before it.
func named(d ast.Decl) map[string]ast.Node {
	if f, ok := d.(*ast.FuncDecl); ok {
		return map[string]ast.Node{receiver(f) + f.Name.Name: f}
	}
	names := map[string]ast.Node{}
	for _, s := range d.(*ast.GenDecl).Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			names[s.Name.Name] = s
		case *ast.ValueSpec:
			for _, n := range s.Names {
				names[n.Name] = s
			}
		}
	}
	return names
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

// fingerprints are those of declarations, in the order of their names; one that is missing has none.
func fingerprints(t *testing.T, pkg, dir string, names []string) []string {
	t.Helper()
	declared := declarations(t, dir)
	lines := make([]string, len(names))
	for i, name := range names {
		mark := "is missing"
		if text, ok := declared[name]; ok {
			mark = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16]
		}
		lines[i] = fmt.Sprintf("%s.%s %s", pkg, name, mark)
	}
	return lines
}

const (
	scheduler   = "k8s.io/kubernetes/pkg/scheduler"
	inTree      = scheduler + "/framework/plugins"
	spreading   = inTree + "/podtopologyspread"
	interpod    = inTree + "/interpodaffinity"
	resources   = inTree + "/noderesources"
	tainting    = inTree + "/tainttoleration"
	cordoning   = inTree + "/nodeunschedulable"
	naming      = inTree + "/nodename"
	selecting   = inTree + "/nodeaffinity"
	matching    = "k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	volumes     = inTree + "/volumebinding"
	images      = inTree + "/imagelocality"
	parts       = scheduler + "/framework"
	allocating  = inTree + "/dynamicresources"
	preempting  = inTree + "/defaultpreemption"
	evaluating  = scheduler + "/framework/preemption"
	running     = scheduler + "/framework/runtime"
	nodes       = scheduler + "/backend/cache"
	command     = "k8s.io/kubernetes/cmd/kube-scheduler/app"
	recording   = "k8s.io/client-go/tools/events"
	switchFiles = "../reload"
)

// relied are the declarations by whose insides this module goes. docs/upstream-contract.md says who does, and for what.
var relied = map[string][]string{
	scheduler: {
		"Scheduler.ScheduleOne", "Scheduler.scheduleOnePod", "Scheduler.runBindingCycle", "Scheduler.schedulingCycle",
		"Scheduler.assumeAndReserve", "Scheduler.unreserveAndForget", "Scheduler.bindingCycle", "Scheduler.handleBindingCycleError",
		"Scheduler.handleSchedulingFailure", "updatePod", "Scheduler.schedulePod", "Scheduler.finishBinding", "newPodInformer", "Scheduler.Run", "Scheduler.numFeasibleNodesToFind",
	},
	nodes: {"Snapshot.AssumePod", "Snapshot.ForgetPod"},
	running: {
		"addGENominatedPods", "frameworkImpl.RunFilterPluginsWithNominatedPods", "frameworkImpl.WaitOnPermit", "frameworkImpl.EnqueueExtensions",
		"frameworkImpl.fillEnqueueExtensions",
	},
	spreading: {"preFilterState", "preFilterStateKey", "PodTopologySpread.Filter"},
	interpod:  {"ErrReasonExistingAntiAffinityRulesNotMatch", "InterPodAffinity.Filter"},
	resources: {
		"fitsRequest", "shouldDelegateResourceToDRA", "Fit.Filter", "Fit.Score", "BalancedAllocation.Score", "resourceAllocationScorer.score",
		"resourceAllocationScorer.calculateNodeAllocatableRequest", "resourceAllocationScorer.calculateResourceAllocatableRequest",
	},
	tainting:  {"TaintToleration.Filter", "TaintToleration.Score", "TaintToleration.NormalizeScore"},
	cordoning: {"NodeUnschedulable.Filter"},
	naming:    {"NodeName.Filter", "Fits"},
	selecting: {
		"NodeAffinity.PreFilter", "NodeAffinity.Filter", "NodeAffinity.PreScore", "NodeAffinity.Score", "NodeAffinity.NormalizeScore",
		"getPodPreferredNodeAffinity",
	},
	matching: {
		"NewRequiredNodeAffinity", "RequiredNodeAffinity.Match", "NodeSelector.Match", "LazyErrorNodeSelector.Match", "PreferredSchedulingTerms.Score",
		"nodeSelectorTerm.match", "extractNodeFields", "newNodeSelectorTerm", "nodeSelectorRequirementsAsSelector",
		"nodeSelectorRequirementsAsFieldSelector",
	},
	volumes: {"VolumeBinding.PreFilter", "VolumeBinding.Score"},
	images:  {"ImageLocality.Score", "sumImageScores", "normalizedImageName"},
	parts:   {"NodeInfo.SetNode", "NodeInfo.update", "nextGeneration"},
	allocating: {
		"New", "stateKey", "DynamicResources.PreFilter", "DynamicResources.PreFilterExtensions", "DynamicResources.Score", "DynamicResources.Reserve",
		"DynamicResources.Unreserve",
		"foreachAllocatedDevice", "claimTracker.SignalClaimPendingAllocation", "claimTracker.MaybeRemoveClaimPendingAllocation",
	},
	preempting: {"DefaultPreemption.PodEligibleToPreemptOthers", "DefaultPreemption.SelectVictimsOnNode", "New"},
	evaluating: {"Evaluator.Preempt", "Evaluator.evaluate", "pickOneNodeForPreemption"},
	command:    {"Run", "Setup", "runCommand"},
	recording:  {"recorderImpl.makeEvent"},
}

// TestTheInsidesOfKubernetesAreTheSame compares the source of what is relied on.
func TestTheInsidesOfKubernetesAreTheSame(t *testing.T) {
	t.Parallel()
	var got []string
	for _, pkg := range slices.Sorted(maps.Keys(relied)) {
		got = append(got, fingerprints(t, pkg, directory(t, pkg), slices.Sorted(slices.Values(relied[pkg])))...)
	}
	wantFile(t, "fingerprints.txt", got, "Read what changed, follow it where docs/upstream-contract.md says who relies on it, then run this test with -rewrite.")
}

// TestFingerprintsTellChangesApart: comments and blank lines do not count, a changed condition and a missing method do.
func TestFingerprintsTellChangesApart(t *testing.T) {
	t.Parallel()
	of := func(source string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n"+source), 0o600); err != nil {
			t.Fatal(err)
		}
		return strings.Join(fingerprints(t, "a", dir, []string{"T.M"}), "\n")
	}
	plain := of("type T struct{}\nfunc (t *T) M(n int) bool { if n > 1 { return true }; return false }")
	if got := of("type T struct{}\n\n// M is explained.\nfunc (t *T) M(n int) bool {\n\tif n > 1 { // so\n\t\treturn true\n\t}\n\n\treturn false\n}"); got != plain {
		t.Errorf("with comments it is %q, want %q", got, plain)
	}
	if got := of("type T struct{}\nfunc (t *T) M(n int) bool { if n > 2 { return true }; return false }"); got == plain {
		t.Errorf("another condition has the same fingerprint %q", got)
	}
	if got := of("type T struct{}"); got != "a.T.M is missing" {
		t.Errorf("without the method it is %q", got)
	}
}

// TestEveryMethodOfWhatIsWrappedIsDecidedOn: a wrapper passes on what it does not know, so that a new method of upstream's goes past it.
func TestEveryMethodOfWhatIsWrappedIsDecidedOn(t *testing.T) {
	t.Parallel()
	var got []string
	for _, w := range []struct {
		dir, wrapper string
		of           reflect.Type
	}{
		{"prequeue", "prequeue", reflect.TypeFor[queue.SchedulingQueue]()},
		{switchFiles, "ReloadableFramework", reflect.TypeFor[framework.Framework]()},
		{"../app", "recording", reflect.TypeFor[framework.Framework]()},
		{"../app", "fenced", reflect.TypeFor[framework.Framework]()},
		{"../app", "followedLock", reflect.TypeFor[resourcelock.Interface]()},
		{"../../plugins/gangpreemption", "GangPreemption", reflect.TypeFor[preemption.Interface]()},
		{"../../plugins/planner", "deviceProfile", reflect.TypeFor[framework.Framework]()},
		{"../../plugins/planner", "claimView", reflect.TypeFor[fwk.ResourceClaimTracker]()},
		{"../../plugins/planner", "deviceManager", reflect.TypeFor[fwk.SharedDRAManager]()},
		{"../../plugins/planner", "deviceHandle", reflect.TypeFor[fwk.Handle]()},
	} {
		declared := declarations(t, w.dir)
		for method := range w.of.Methods() {
			how := "passed on"
			if _, ok := declared[w.wrapper+"."+method.Name]; ok {
				how = "its own"
			}
			got = append(got, fmt.Sprintf("%s: %s.%s: %s", w.wrapper, w.of, method.Name, how))
		}
	}
	wantFile(t, "methods.txt", got, "Decide for each new method whether the wrapper has to have its own, then run this test with -rewrite.")
}

// TestThePluginsOfKubernetesAreKnown: the planner knows of each by what of a pod it goes, and which filters need room.
func TestThePluginsOfKubernetesAreKnown(t *testing.T) {
	t.Parallel()
	wantFile(t, "plugins.txt", slices.Sorted(maps.Keys(plugins.NewInTreeRegistry())),
		"Find out by what of a pod each new plugin goes (pkg/plugins/planner), then run this test with -rewrite.")
}

// TestTheContractIsWrittenDown: docs/upstream-contract.md names every declaration.
func TestTheContractIsWrittenDown(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "upstream-contract.md"))
	if err != nil {
		t.Fatal(err)
	}
	for pkg, names := range relied {
		for _, name := range names {
			if !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/upstream-contract.md does not say who relies on `%s` of %s", name, pkg)
			}
		}
	}
}
