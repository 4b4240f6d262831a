// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/jobs"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// volcanoCRDs generates definitions of Volcano from the Go types of its module, in a folder of their own.
func volcanoCRDs(t *testing.T, packages ...string) string {
	t.Helper()
	args := []string{"tool", "-modfile=tools/go.mod", "controller-gen", "crd:crdVersions=v1,maxDescLen=0", "output:crd:dir=" + t.TempDir()}
	for _, p := range packages {
		args = append(args, "paths=volcano.sh/apis/pkg/apis/"+p)
	}
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = filepath.Join("..", "..", "..")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("generating Volcano's definitions: %v\n%s", err, out)
	}
	return strings.TrimPrefix(args[4], "output:crd:dir=")
}

// foreignCRDs are the definitions that a module has in a folder. The module is one that others of the tests need; false if it is not cached.
func foreignCRDs(t *testing.T, module, folder string, files ...string) (dir string, ok bool) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	command.Dir, command.Env = t.TempDir(), append(os.Environ(), "GOFLAGS=-mod=mod")
	if os.Getenv("CALDERA_ECOSYSTEM") == "" {
		command.Env = append(command.Env, "GOPROXY=off")
	}
	out, err := command.Output()
	var is struct{ Dir string }
	if err != nil || json.Unmarshal(out, &is) != nil || is.Dir == "" {
		return "", false
	}
	dir = t.TempDir()
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(is.Dir, filepath.FromSlash(folder), file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir, true
}

// oldCRD is a definition of a time when the kind could not be suspended.
const oldCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jaxjobs.kubeflow.org}
spec:
  group: kubeflow.org
  scope: Namespaced
  names: {kind: JAXJob, listKind: JAXJobList, plural: jaxjobs, singular: jaxjob}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {runPolicy: {type: object, properties: {cleanPodPolicy: {type: string}}}}}}}}
`

// suspension is a cluster with jobs of many kinds.
type suspension struct {
	*env.Env
	client dynamic.Interface
	// has are the modules whose definitions are there.
	has map[string]bool
}

func newSuspension(t *testing.T) *suspension {
	t.Helper()
	s := &suspension{has: map[string]bool{"": true}}
	old := t.TempDir()
	if err := os.WriteFile(filepath.Join(old, "jaxjobs.yaml"), []byte(oldCRD), 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := []string{old, volcanoCRDs(t, "batch/v1alpha1", "bus/v1alpha1")}
	for _, m := range []struct {
		module, folder string
		files          []string
	}{
		{"sigs.k8s.io/jobset@v0.8.2", "config/components/crd/bases", []string{"jobset.x-k8s.io_jobsets.yaml"}},
		{"github.com/kubeflow/trainer/v2@v2.0.0", "manifests/base/crds", []string{"trainer.kubeflow.org_trainjobs.yaml"}},
		{"github.com/kubeflow/training-operator@v1.8.1", "manifests/base/crds", []string{"kubeflow.org_pytorchjobs.yaml"}},
		{"github.com/ray-project/kuberay/ray-operator@v1.4.2", "config/crd/bases", []string{"ray.io_rayjobs.yaml", "ray.io_rayclusters.yaml", "ray.io_rayservices.yaml"}},
	} {
		if dir, ok := foreignCRDs(t, m.module, m.folder, m.files...); ok {
			dirs, s.has[m.module] = append(dirs, dir), true
		}
	}
	s.Env = env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=8,memory=32Gi"}, CRDDirs: dirs})
	args, err := schedulerprocess.InstallViews(t.Context(), s.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	start(t, schedulerprocess.Options{Kubeconfig: s.Kubeconfig, Args: args})
	if s.client, err = dynamic.NewForConfig(s.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	s.lists(t, "")
	return s
}

// lists waits until the scheduler lists a job, or whatever there is.
func (s *suspension) lists(t *testing.T, name string) {
	t.Helper()
	env.Eventually(t, time.Minute, func() string {
		if out, said, err := s.call(t); err != nil || said != "" || !strings.Contains(out, name) {
			return fmt.Sprintf("the jobs are %v, %s\n%s", err, said, out)
		}
		return ""
	})
}

// call calls "jobs suspend" or "jobs resume".
func (s *suspension) call(t *testing.T, args ...string) (out, said string, err error) {
	t.Helper()
	return command(t.Context(), jobs.New(), append(args, "--kubeconfig", s.Kubeconfig)...)
}

// says calls it and compares what it says.
func (s *suspension) says(t *testing.T, want string, args ...string) {
	t.Helper()
	out, said, err := s.call(t, args...)
	if err != nil || said != "" {
		t.Fatalf("jobs %v: %v, %s", args, err, said)
	}
	if diff := cmp.Diff(want+"\n", out); diff != "" {
		t.Errorf("jobs %v says (-want,+got)\n%s", args, diff)
	}
}

// fails calls it and looks for a text in its error.
func (s *suspension) fails(t *testing.T, want string, args ...string) {
	t.Helper()
	if out, _, err := s.call(t, args...); err == nil || !strings.Contains(err.Error(), want) || out != "" {
		t.Errorf("jobs %v says %v, want %q\n%s", args, err, want, out)
	}
}

// create creates an object of YAML.
func (s *suspension) create(t *testing.T, resource, text string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	if owner != nil {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
	created, err := s.client.Resource(o.GroupVersionKind().GroupVersion().WithResource(resource)).Namespace(env.Namespace).Create(t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// switchOf reads a field of an object.
func (s *suspension) switchOf(t *testing.T, o *unstructured.Unstructured, resource string, field ...string) bool {
	t.Helper()
	now, err := s.client.Resource(o.GroupVersionKind().GroupVersion().WithResource(resource)).Namespace(env.Namespace).Get(t.Context(), o.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	is, _, err := unstructured.NestedBool(now.Object, field...)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// job is a Job of two pods, for the batch profile, which are a gang where that is asked for.
func job(name string, gang bool) *batchv1.Job {
	template := env.Pod("", "1")
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	template.Annotations = map[string]string{"localcluster.caldera.dev/run-for": "1h"}
	o := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{
		Parallelism: new(int32(2)), Completions: new(int32(2)),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: template.Annotations}, Spec: template.Spec},
	}}
	if gang {
		o.Annotations = map[string]string{model.MinMemberAnnotation: "2"}
	}
	return o
}

// running waits until so many pods of a Job run, and there are no others.
func (s *suspension) running(t *testing.T, job string, want int) {
	t.Helper()
	env.Eventually(t, time.Minute, func() string {
		list, err := s.Kube.CoreV1().Pods(env.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
		if err != nil {
			return err.Error()
		}
		runs := 0
		for i := range list.Items {
			if list.Items[i].Status.Phase == corev1.PodRunning {
				runs++
			}
		}
		if runs != want || len(list.Items) != want {
			return fmt.Sprintf("%d pods of %d run, want %d", runs, len(list.Items), want)
		}
		return ""
	})
}

func TestJobsAreSuspendedByTheirOwners(t *testing.T) { //nolint:tparallel // its parts share a cluster, one after the other
	t.Parallel()
	s := newSuspension(t)
	s.batchJob(t)
	s.ownersOfPods(t)
	s.withoutSwitch(t)
	s.frameworks(t)
	s.chains(t)
	s.volcanosJobs(t)
	s.createdAgain(t)
	s.forbidden(t)
}

// batchJob: a Job is suspended and resumed.
func (s *suspension) batchJob(t *testing.T) {
	if _, err := s.Kube.BatchV1().Jobs(env.Namespace).Create(t.Context(), job("train", true), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.running(t, "train", 2)
	s.says(t, "job.batch/train suspended (dry run): spec.suspend is true", "suspend", "train", "--dry-run=client")
	s.says(t, "job.batch/train suspended (server dry run): spec.suspend is true", "suspend", "default/train", "--dry-run=server")
	s.fails(t, `--dry-run is "maybe": use one of none, server, client`, "suspend", "train", "--dry-run=maybe")
	s.says(t, "job.batch/train is not suspended", "resume", "train")
	s.running(t, "train", 2)
	s.says(t, "job.batch/train suspended: spec.suspend is true", "suspend", "train")
	s.running(t, "train", 0)
	// The scheduler knows nothing of it any more, or will in a moment.
	s.says(t, "job.batch/train is suspended already", "suspend", "train")
	s.says(t, "job.batch/train resumed: spec.suspend is false", "resume", "train")
	s.running(t, "train", 2)
	// Views are made once a second at most, so that the first may be from before.
	env.Eventually(t, time.Minute, func() string {
		if out, _, err := s.call(t); err != nil || !strings.Contains(out, "train") || !strings.Contains(out, "PHASE") {
			return fmt.Sprintf("jobs without more lists %v\n%s", err, out)
		}
		return ""
	})
}

// ownersOfPods: what owns the pods of a PodGroup is found without any owner of the PodGroup.
func (s *suspension) ownersOfPods(t *testing.T) {
	s.CreateGroup(t, env.Gang{Name: "handmade", Min: 2})
	s.lists(t, "handmade")
	for _, name := range []string{"half-a", "half-b"} {
		o := job(name, false)
		o.Spec.Template.Annotations[model.GroupNameAnnotation] = "handmade"
		if _, err := s.Kube.BatchV1().Jobs(env.Namespace).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.running(t, name, 2)
		if name == "half-a" {
			s.says(t, "job.batch/half-a suspended (dry run): spec.suspend is true", "suspend", "handmade", "--dry-run=client")
		}
	}
	s.fails(t, "the pods of PodGroup default/handmade have several owners: Job default/half-a, Job default/half-b; name one of them", "suspend", "handmade")
	s.Create(t, env.Gang{Name: "barepods", Min: 1, Size: 1, CPU: "100m"})
	s.lists(t, "barepods")
	s.fails(t, "PodGroup default/barepods has no owner that can be suspended, and neither have its pods: delete them", "suspend", "barepods")
}

// withoutSwitch: who has no switch is told what to do.
func (s *suspension) withoutSwitch(t *testing.T) {
	template := env.Pod("", "100m")
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: template.Spec},
	}}
	if _, err := s.Kube.AppsV1().Deployments(env.Namespace).Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.CreatePods(t, env.Pod("alone", "100m"))
	var pod string
	env.Eventually(t, time.Minute, func() string {
		list, err := s.Kube.CoreV1().Pods(env.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil || len(list.Items) != 1 || list.Items[0].Spec.NodeName == "" {
			return fmt.Sprintf("the pod of web has no node (%v)", err)
		}
		pod = list.Items[0].Name
		return ""
	})
	s.lists(t, pod)
	s.lists(t, "alone")
	s.fails(t, "Deployment default/web has no switch by which it is suspended: scale it to 0, by kubectl scale -n default deployment/web --replicas=0", "suspend", pod)
	s.fails(t, "Pod default/alone has no owner that could create it again: delete it", "suspend", "alone")
	s.fails(t, `"nobody" not found, and nothing else of that name that can be suspended`, "suspend", "nobody")
}

const (
	pyTorchJob = `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: torch}, spec: {pytorchReplicaSpecs: {Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}`
	jobSet     = `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: set}, spec: {}}`
	trainJob   = `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: tune}, spec: {runtimeRef: {name: torch}}}`
	rayHead    = `headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: i}]}}}`
	rayCluster = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: NAME}, spec: {` + rayHead + `}}`
	rayJob     = `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: NAME}, spec: {shutdownAfterJobFinishes: true, rayClusterSpec: {` + rayHead + `}}}`
	jaxJob     = `{apiVersion: kubeflow.org/v1, kind: JAXJob, metadata: {name: old}, spec: {runPolicy: {cleanPodPolicy: None}}}`
)

// frameworks: each framework has its own switch. That of a definition that lacks it is not written.
func (s *suspension) frameworks(t *testing.T) {
	for _, f := range []struct{ module, resource, text, said, field string }{
		{"sigs.k8s.io/jobset@v0.8.2", "jobsets", jobSet, "jobset.jobset.x-k8s.io/set", "spec.suspend"},
		{"github.com/kubeflow/trainer/v2@v2.0.0", "trainjobs", trainJob, "trainjob.trainer.kubeflow.org/tune", "spec.suspend"},
		{"github.com/kubeflow/training-operator@v1.8.1", "pytorchjobs", pyTorchJob, "pytorchjob.kubeflow.org/torch", "spec.runPolicy.suspend"},
		{"github.com/ray-project/kuberay/ray-operator@v1.4.2", "rayjobs", strings.ReplaceAll(rayJob, "NAME", "ray"), "rayjob.ray.io/ray", "spec.suspend"},
	} {
		t.Run(f.resource, func(t *testing.T) {
			if !s.has[f.module] {
				t.Skipf("%s is not cached: make test-ecosystem fetches it", f.module)
			}
			o := s.create(t, f.resource, f.text, nil)
			s.says(t, f.said+" suspended: "+f.field+" is true", "suspend", o.GetName())
			if !s.switchOf(t, o, f.resource, strings.Split(f.field, ".")...) {
				t.Errorf("%s is not suspended", f.said)
			}
			s.says(t, f.said+" resumed: "+f.field+" is false", "resume", o.GetName())
			if s.switchOf(t, o, f.resource, strings.Split(f.field, ".")...) {
				t.Errorf("%s is suspended", f.said)
			}
		})
	}
	t.Run("a field that the cluster does not know", func(t *testing.T) {
		s.create(t, "jaxjobs", jaxJob, nil)
		s.fails(t, `unknown field "spec.runPolicy.suspend"`, "suspend", "old")
	})
}

// chains: of owners above each other the topmost that can be suspended is.
func (s *suspension) chains(t *testing.T) {
	if !s.has["github.com/ray-project/kuberay/ray-operator@v1.4.2"] {
		t.Log("KubeRay's module is not cached: make test-ecosystem fetches it")
		return
	}
	named := func(text, name string) string { return strings.ReplaceAll(text, "NAME", name) }
	group := func(name string, owner *unstructured.Unstructured) {
		s.CreateGroup(t, env.Gang{Name: name, Min: 5, Group: func(g *volcano.PodGroup) {
			g.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
			// The cluster's garbage collector would be faster than the test.
			g.Finalizers = []string{"example.com/stays"}
		}})
		s.lists(t, name)
	}
	top := s.create(t, "rayjobs", named(rayJob, "sweep"), nil)
	cluster := s.create(t, "rayclusters", named(rayCluster, "sweep-x1"), top)
	group("ray-sweep-x1-pg", cluster)
	s.says(t, "rayjob.ray.io/sweep suspended: spec.suspend is true", "suspend", "ray-sweep-x1-pg")
	if !s.switchOf(t, top, "rayjobs", "spec", "suspend") || s.switchOf(t, cluster, "rayclusters", "spec", "suspend") {
		t.Error("not the topmost owner was suspended")
	}
	// The cluster is not what is suspended of it.
	s.says(t, "rayjob.ray.io/sweep is suspended already", "suspend", "sweep-x1")

	service := s.create(t, "rayservices", `{apiVersion: ray.io/v1, kind: RayService, metadata: {name: serve}, spec: {rayClusterConfig: {`+rayHead+`}}}`, nil)
	s.create(t, "rayclusters", named(rayCluster, "serve-x1"), service)
	out, said, err := s.call(t, "suspend", "serve-x1")
	if err != nil || out != "raycluster.ray.io/serve-x1 suspended: spec.suspend is true\n" || said != "RayService default/serve controls RayCluster default/serve-x1, and may undo this.\n" {
		t.Errorf("of a cluster that somebody else controls is said %v, %s\n%s", err, said, out)
	}

	s.create(t, "rayjobs", strings.Replace(named(rayJob, "keeps"), "shutdownAfterJobFinishes: true", "shutdownAfterJobFinishes: false", 1), nil)
	s.fails(t, "RayJob default/keeps cannot be suspended: KubeRay fails a RayJob", "suspend", "keeps")

	nightly := s.create(t, "cronjobs", `{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly}, spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}`, nil)
	s.create(t, "jobs", `{apiVersion: batch/v1, kind: Job, metadata: {name: nightly-1}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`, nightly)
	s.says(t, "job.batch/nightly-1 resumed (dry run): spec.suspend is false", "resume", "nightly-1", "--dry-run=client")

	lost := top.DeepCopy()
	lost.SetUID("00000000-0000-0000-0000-000000000000")
	group("orphan", lost)
	s.fails(t, "the owner of PodGroup default/orphan, RayJob sweep with uid 00000000-0000-0000-0000-000000000000, is gone", "suspend", "orphan")
}

// volcanosJobs: Volcano's controllers are sent what vcctl sends.
func (s *suspension) volcanosJobs(t *testing.T) {
	there := schema.GroupVersionResource{Group: "batch.volcano.sh", Version: "v1alpha1", Resource: "jobs"}
	orders := s.client.Resource(schema.GroupVersionResource{Group: "bus.volcano.sh", Version: "v1alpha1", Resource: "commands"}).Namespace(env.Namespace)
	o := s.create(t, "jobs", `{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: vc}, spec: {minAvailable: 1}}`, nil)
	phase := func(phase string) {
		_, err := s.client.Resource(there).Namespace(env.Namespace).Patch(t.Context(), "vc", "application/merge-patch+json",
			fmt.Appendf(nil, `{"status":{"state":{"phase":%q}}}`, phase), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
	const vc = "job.batch.volcano.sh/vc "
	s.says(t, vc+"suspended (server dry run): Volcano's controllers have the command AbortJob", "suspend", "vc", "--dry-run=server")
	s.says(t, vc+"is not suspended", "resume", "vc")
	phase("Running")
	s.says(t, vc+"suspended: Volcano's controllers have the command AbortJob", "suspend", "vc")
	phase("Aborted")
	s.says(t, vc+"is suspended already", "suspend", "vc")
	s.says(t, vc+"resumed: Volcano's controllers have the command ResumeJob", "resume", "vc")
	phase("Completed")
	s.fails(t, "Job default/vc is Completed: it can be neither suspended nor resumed", "resume", "vc")
	list, err := orders.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	type order struct{ Action, Target, Owner string }
	var got []order
	for i := range list.Items {
		c := &list.Items[i]
		action, _, _ := unstructured.NestedString(c.Object, "action")
		target, _, _ := unstructured.NestedMap(c.Object, "target")
		if !strings.HasPrefix(c.GetName(), "vc-"+strings.ToLower(action)+"-") || target["uid"] != string(o.GetUID()) {
			t.Errorf("a command is %v", c.Object)
		}
		got = append(got, order{action, fmt.Sprint(target["apiVersion"], " ", target["kind"], " ", target["name"]), c.GetOwnerReferences()[0].Name})
	}
	const target = "batch.volcano.sh/v1alpha1 Job vc"
	if diff := cmp.Diff([]order{{"AbortJob", target, "vc"}, {"ResumeJob", target, "vc"}}, got); diff != "" {
		t.Errorf("the commands (-want,+got)\n%s", diff)
	}
}

// createdAgain has the Job be another one by the time it is changed: whoever asked did not mean that.
func (s *suspension) createdAgain(t *testing.T) {
	first := job("again", false)
	first.Spec.Suspend = new(true)
	if _, err := s.Kube.BatchV1().Jobs(env.Namespace).Create(t.Context(), first, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := s.RESTConfig()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	through := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(host) }}
	replaced := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			replaced = true
			err := s.Kube.BatchV1().Jobs(env.Namespace).Delete(r.Context(), "again", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
			if err == nil {
				_, err = s.Kube.BatchV1().Jobs(env.Namespace).Create(r.Context(), first, metav1.CreateOptions{})
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	file := clientcmdapi.NewConfig()
	file.Clusters["c"], file.Contexts["c"], file.CurrentContext = &clientcmdapi.Cluster{Server: server.URL}, &clientcmdapi.Context{Cluster: "c"}, "c"
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, kubeconfig); err != nil {
		t.Fatal(err)
	}
	out, _, err := command(t.Context(), jobs.New(), "resume", "again", "--kubeconfig", kubeconfig)
	if err == nil || !strings.Contains(err.Error(), "uid") || !replaced {
		t.Errorf("of a Job that is another one now is said %v\n%s", err, out)
	}
	now, err := s.Kube.BatchV1().Jobs(env.Namespace).Get(t.Context(), "again", metav1.GetOptions{})
	if err != nil || !*now.Spec.Suspend {
		t.Errorf("the Job that was created again was resumed (%v)", err)
	}
}

// forbidden: who may neither see views nor Jobs is told so.
func (s *suspension) forbidden(t *testing.T) {
	nobody := user(t, s.Env, "nobody")
	_, _, err := command(t.Context(), jobs.New(), "suspend", "train", "--kubeconfig", nobody)
	for _, want := range []string{`cannot get resource "jobviews"`, `cannot get resource "jobs" in API group "batch"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}
