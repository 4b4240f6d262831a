// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// always has the tests of controllers fetch their modules. Otherwise they run only where the modules are cached: they are many.
const always = "CALDERA_ECOSYSTEM"

// buildOperator builds the program of a module below this folder, and returns its path and that of the module it is about.
func buildOperator(t *testing.T, folder, module string) (program, sources string) {
	t.Helper()
	environment := append(os.Environ(), "CGO_ENABLED=0")
	if os.Getenv(always) == "" {
		environment = append(environment, "GOPROXY=off")
	}
	run := func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir, command.Env = folder, environment
		var stderr strings.Builder
		command.Stderr = &stderr
		out, err := command.Output()
		if err != nil && strings.Contains(stderr.String(), "disabled by GOPROXY=off") {
			t.Skipf("the modules of %s are not cached: make test-ecosystem fetches them", folder)
		}
		if err != nil {
			err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
		}
		return strings.TrimSpace(string(out)), err
	}
	program = filepath.Join(t.TempDir(), folder)
	if _, err := run("build", "-o", program, "."); err != nil {
		t.Fatal(err)
	}
	sources, err := run("list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		t.Fatal(err)
	}
	return program, sources
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

// TestTrainingOperator has the real controllers make two jobs of four pods where there is room for one: one starts whole, of the other no pod has a
// node until the first is deleted. With Volcano's PodGroups it has no pods before it is let in.
func TestTrainingOperator(t *testing.T) {
	t.Parallel()
	program, sources := buildOperator(t, "trainingoperator", "github.com/kubeflow/training-operator")
	crds := copyCRDs(t, filepath.Join(sources, "manifests", "base", "crds"), "kubeflow.org_pytorchjobs.yaml", "kubeflow.org_tfjobs.yaml", "kubeflow.org_mpijobs.yaml")
	for name, tc := range map[string]struct {
		scheduler, job, resource string
		// waiting are the pods of the job that waits.
		waiting int
	}{
		"volcano":           {"volcano", pyTorchJob, "pytorchjobs", 0},
		"scheduler-plugins": {otherName, tfJob, "tfjobs", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openWith(t, "count=1,cpu=4,memory=64Gi", crds)
			env.StartProgram(t, program, "--gang-scheduler-name="+tc.scheduler, "--kubeconfig="+w.Kubeconfig)
			jobs := w.customResources(t, schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: tc.resource})
			for _, name := range []string{"first", "second"} {
				create(t, jobs, name, tc.job)
			}
			runs, waits := "first", "second"
			env.Eventually(t, patience, func() string {
				for _, name := range []string{"first", "second"} {
					if len(running(w.podsOf(t, name))) == 4 {
						if runs = name; runs == waits {
							waits = "first"
						}
						return ""
					}
				}
				return "no job has four pods that run"
			})
			env.Eventually(t, patience, func() string {
				if pods := w.podsOf(t, waits); len(pods) != tc.waiting || w.onNodes(pods) > 0 {
					return fmt.Sprintf("the job that waits has %d pods, %d of them on nodes, want %d and none", len(pods), w.onNodes(pods), tc.waiting)
				}
				return ""
			})
			env.Eventually(t, patience, saysRunning(t, jobs, runs))
			if err := jobs.Delete(t.Context(), runs, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			// The garbage collector takes half a minute to know of a new kind of owner.
			w.DeletePods(t.Context(), t, w.podsOf(t, runs)...)
			env.Eventually(t, patience, saysRunning(t, jobs, waits))
			if got := len(running(w.podsOf(t, waits))); got != 4 {
				t.Errorf("%d pods of the job that waited run, want 4", got)
			}
		})
	}
}

// customResources is a client for objects of a framework.
func (w *world) customResources(t *testing.T, resource schema.GroupVersionResource) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(w.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(resource).Namespace(env.Namespace)
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

// podsOf returns the pods that training-operator has made for a job.
func (w *world) podsOf(t *testing.T, job string) []*corev1.Pod {
	t.Helper()
	pods, err := w.Pods.Pods(env.Namespace).List(labels.SelectorFromSet(labels.Set{"training.kubeflow.org/job-name": job}))
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

// saysRunning returns a condition: the framework's own controller has seen that the job runs.
func saysRunning(t *testing.T, client dynamic.ResourceInterface, name string) func() string {
	return func() string {
		job, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "Running" && c["status"] == "True" {
				return ""
			}
		}
		return fmt.Sprintf("job %s has the conditions %v, want Running", name, conditions)
	}
}
