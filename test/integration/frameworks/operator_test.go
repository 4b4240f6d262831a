// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// always has the tests of controllers fetch their modules. Otherwise they run only where the modules are cached: they are many.
const always = "CALDERA_ECOSYSTEM"

// operator is a program below this folder that runs controllers of frameworks, in a module of its own.
type operator struct {
	t      *testing.T
	folder string
	path   string
}

// buildOperator builds a package of a module as a program, and skips the test if it needs modules that are not cached.
func buildOperator(t *testing.T, folder, pkg string) *operator {
	t.Helper()
	o := &operator{t: t, folder: folder, path: filepath.Join(t.TempDir(), folder)}
	o.run("build", "-o", o.path, pkg)
	return o
}

// run runs the go command in the program's module.
func (o *operator) run(args ...string) (out string) {
	o.t.Helper()
	command := exec.CommandContext(o.t.Context(), "go", args...)
	command.Dir, command.Env = o.folder, append(os.Environ(), "CGO_ENABLED=0")
	if os.Getenv(always) == "" {
		command.Env = append(command.Env, "GOPROXY=off")
	}
	var stderr strings.Builder
	command.Stderr = &stderr
	stdout, err := command.Output()
	switch {
	case err == nil:
	case strings.Contains(stderr.String(), "disabled by GOPROXY=off"):
		o.t.Skipf("the modules of %s are not cached: make test-ecosystem fetches them", o.folder)
	default:
		o.t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(stdout))
}

// crds copies definitions that a module of the program has into a folder of their own, and returns that.
func (o *operator) crds(module, from string, files ...string) string {
	o.t.Helper()
	return copyCRDs(o.t, filepath.Join(o.run("list", "-m", "-f", "{{.Dir}}", module), filepath.FromSlash(from)), files...)
}

// copyCRDs puts those definitions of a module that are named into a folder of their own.
func copyCRDs(t *testing.T, from string, files ...string) string {
	t.Helper()
	to := t.TempDir()
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// pyTorchJob is one with a master and three workers of one core each.
const pyTorchJob = `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  runPolicy: {schedulingPolicy: {queue: research}}
  pytorchReplicaSpecs:
    Master: {replicas: 1, restartPolicy: OnFailure, template: &pod {metadata: {annotations: {localcluster.caldera.dev/run-for: 1h}}, spec: {terminationGracePeriodSeconds: 1, containers: [
      {name: pytorch, image: example.com/train, resources: {requests: {cpu: "1"}}}]}}}
    Worker: {replicas: 3, restartPolicy: OnFailure, template: *pod}
`

// tfJob is one with a chief and three workers.
const tfJob = `
apiVersion: kubeflow.org/v1
kind: TFJob
spec:
  tfReplicaSpecs:
    Chief: {replicas: 1, restartPolicy: Never, template: &pod {metadata: {annotations: {localcluster.caldera.dev/run-for: 1h}}, spec: {terminationGracePeriodSeconds: 1, containers: [
      {name: tensorflow, image: example.com/train, resources: {requests: {cpu: "1"}}}]}}}
    Worker: {replicas: 3, restartPolicy: Never, template: *pod}
`

// torchRuntime has a TrainJob of Kubeflow Trainer make a JobSet, with what JobSet's webhook would add.
const torchRuntime = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 4, torch: {numProcPerNode: auto}}
  podGroupPolicy: {coscheduling: {scheduleTimeoutSeconds: 60}}
  template:
    spec:
      successPolicy: {operator: All}
      startupPolicy: {startupPolicyOrder: AnyOrder}
      network: {enableDNSHostnames: true, publishNotReadyAddresses: true}
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            completionMode: Indexed
            template:
              metadata: {annotations: {localcluster.caldera.dev/run-for: 1h}}
              spec:
                schedulerName: volcano
                restartPolicy: OnFailure
                terminationGracePeriodSeconds: 1
                containers: [{name: node, image: example.com/train, resources: {requests: {cpu: "1"}}}]
`

const trainJobOf = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
spec: {runtimeRef: {name: torch}}
`

// framework is one whose own controllers are run.
type framework struct {
	operator func(t *testing.T) (o *operator, crds []string)
	args     []string
	// before is created first.
	before      string
	beforeThere schema.GroupVersionResource
	// job is the object that a user creates, of the resource there. It has four pods, on which the label has its name.
	job   string
	there schema.GroupVersionResource
	label string
	// makes is the resource of an object with the same name that the framework creates for the job; empty if it creates none.
	makes schema.GroupVersionResource
	// waiting are the pods of the job that waits.
	waiting int
	// runs reports whether the framework has seen that the job runs, or what it has made of it.
	runs func(object *unstructured.Unstructured) bool
}

func trainingOperatorOf(t *testing.T) (o *operator, crds []string) {
	o = buildOperator(t, "trainingoperator", ".")
	return o, []string{o.crds("github.com/kubeflow/training-operator", "manifests/base/crds",
		"kubeflow.org_pytorchjobs.yaml", "kubeflow.org_tfjobs.yaml", "kubeflow.org_mpijobs.yaml")}
}

func trainerOf(t *testing.T) (o *operator, crds []string) {
	o = buildOperator(t, "trainer", ".")
	return o, []string{
		o.crds("github.com/kubeflow/trainer/v2", "manifests/base/crds", "trainer.kubeflow.org_clustertrainingruntimes.yaml",
			"trainer.kubeflow.org_trainingruntimes.yaml", "trainer.kubeflow.org_trainjobs.yaml"),
		o.crds("sigs.k8s.io/jobset", "config/components/crd/bases", "jobset.x-k8s.io_jobsets.yaml"),
	}
}

// TestControllersOfFrameworks has the real controllers make two jobs of four pods where there is room for one: one starts whole, of the other no pod
// has a node until the first is deleted. With Volcano's PodGroups it has no pods before it is let in.
func TestControllersOfFrameworks(t *testing.T) {
	t.Parallel()
	const label = "training.kubeflow.org/job-name"
	kubeflow := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: resource}
	}
	trainer := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: resource}
	}
	for name, f := range map[string]framework{
		"training-operator, volcano": {
			operator: trainingOperatorOf, args: []string{"--gang-scheduler-name=volcano"},
			job: pyTorchJob, there: kubeflow("pytorchjobs"), label: label, waiting: 0, runs: saysRunning,
		},
		"training-operator, scheduler-plugins": {
			operator: trainingOperatorOf, args: []string{"--gang-scheduler-name=" + otherName},
			job: tfJob, there: kubeflow("tfjobs"), label: label, waiting: 4, runs: saysRunning,
		},
		"Trainer and JobSet, coscheduling": {
			operator: trainerOf, before: torchRuntime, beforeThere: trainer("clustertrainingruntimes"),
			job: trainJobOf, there: trainer("trainjobs"), label: "jobset.sigs.k8s.io/jobset-name", waiting: 4, runs: hasReadyJob,
			makes: schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.test(t)
		})
	}
}

func (f framework) test(t *testing.T) {
	program, crds := f.operator(t)
	w := openWith(t, conf, "count=1,cpu=4,memory=64Gi", crds...)
	env.StartProgram(t, exec.CommandContext(t.Context(), program.path, append(f.args, "--kubeconfig="+w.Kubeconfig)...))
	client, err := dynamic.NewForConfig(w.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	if f.before != "" {
		create(t, client.Resource(f.beforeThere), "torch", f.before)
	}
	jobs := client.Resource(f.there).Namespace(env.Namespace)
	names := []string{"first", "second"}
	for _, name := range names {
		create(t, jobs, name, f.job)
	}
	pods := func(name string) []*corev1.Pod { return w.labelled(t, f.label, name) }
	last := time.Now()
	maybeRemind := func() {
		if time.Since(last) > forgotten {
			last = time.Now()
			remind(t, jobs, names...)
		}
	}
	env.Eventually(t, patience, func() string {
		if len(running(pods(names[0]))) == 4 {
			return ""
		}
		slices.Reverse(names)
		maybeRemind()
		said := "no job has four pods that run:"
		for _, p := range slices.Concat(pods(names[0]), pods(names[1])) {
			said += fmt.Sprintf("\n%s on %q: %s %v", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.Conditions)
		}
		return said
	})
	runs, waits := names[0], names[1]
	env.Eventually(t, patience, func() string {
		if pods := pods(waits); len(pods) != f.waiting || w.onNodes(pods) > 0 {
			maybeRemind()
			return fmt.Sprintf("the job that waits has %d pods, %d of them on nodes, want %d and none", len(pods), w.onNodes(pods), f.waiting)
		}
		return ""
	})
	env.Eventually(t, patience, f.seesRunning(t, client, runs))
	f.remove(t, w, client, runs)
	// The job's controller may be deleting them, too.
	left := metav1.ListOptions{LabelSelector: f.label + "=" + runs}
	if err := w.Kube.CoreV1().Pods(env.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, left); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, patience, f.seesRunning(t, client, waits))
	// Their controllers say that jobs run once some of their pods do.
	env.Eventually(t, patience, func() string {
		if got := len(running(pods(waits))); got != 4 {
			return fmt.Sprintf("%d pods of the job that waited run, want 4", got)
		}
		return ""
	})
}

// forgotten is after how long controllers are reminded of jobs.
const forgotten = 5 * time.Second

// remind has a controller look at jobs again. That of training-operator 1.8.1 gives up as long as its cache does not have the PodGroup that it
// has made. It looks again when the PodGroup changes, but not if the scheduler has written the status by the time that the cache has it.
func remind(t *testing.T, jobs dynamic.ResourceInterface, names ...string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"reminded":%q}}}`, time.Now())
	for _, name := range names {
		if _, err := jobs.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// remove deletes a job and what it has made, but for the pods: the garbage collector takes half a minute to know of a new kind of owner.
func (f framework) remove(t *testing.T, w *world, client dynamic.Interface, name string) {
	t.Helper()
	resources := []schema.GroupVersionResource{f.there}
	if f.makes != (schema.GroupVersionResource{}) {
		resources = append(resources, f.makes)
	}
	for _, resource := range resources {
		if err := client.Resource(resource).Namespace(env.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	options := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	selector := metav1.ListOptions{LabelSelector: f.label + "=" + name}
	if err := w.Kube.BatchV1().Jobs(env.Namespace).DeleteCollection(t.Context(), options, selector); err != nil {
		t.Fatal(err)
	}
}

// seesRunning returns a condition: the framework's own controller has seen that the job runs.
func (f framework) seesRunning(t *testing.T, client dynamic.Interface, name string) func() string {
	resource := f.there
	if f.makes != (schema.GroupVersionResource{}) {
		resource = f.makes
	}
	return func() string {
		object, err := client.Resource(resource).Namespace(env.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		switch {
		case err != nil:
			return err.Error()
		case !f.runs(object):
			return fmt.Sprintf("%s %s has the status %v, want it to run", resource.Resource, name, object.Object["status"])
		}
		return ""
	}
}

// saysRunning: the job has the condition Running.
func saysRunning(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Running" && m["status"] == "True"
	})
}

// hasReadyJob: all pods of a Job of the JobSet are ready.
func hasReadyJob(set *unstructured.Unstructured) bool {
	jobs, _, _ := unstructured.NestedSlice(set.Object, "status", "replicatedJobsStatus")
	return slices.ContainsFunc(jobs, func(j any) bool {
		m, ok := j.(map[string]any)
		return ok && m["ready"] == int64(1)
	})
}

func create(t *testing.T, client dynamic.ResourceInterface, name, text string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetName(name)
	if _, err := client.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// labelled returns the pods that a framework has made for a job.
func (w *world) labelled(t *testing.T, label, job string) []*corev1.Pod {
	t.Helper()
	pods, err := w.Pods.Pods(env.Namespace).List(labels.SelectorFromSet(labels.Set{label: job}))
	if err != nil {
		t.Fatal(err)
	}
	return pods
}

func running(pods []*corev1.Pod) (run []*corev1.Pod) {
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning {
			run = append(run, p)
		}
	}
	return run
}
