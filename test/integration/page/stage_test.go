// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/workqueue"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const (
	// patience is within what time anything has to have happened.
	patience = 2 * time.Minute
	// commandVariable is the environment variable that names a prebuilt kubectl-caldera.
	commandVariable = "CALDERA_KUBECTL_CALDERA"

	gpu corev1.ResourceName = "nvidia.com/gpu"
)

// conf has queues of a tree borrow, and take back what is theirs.
const conf = `
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
`

// stage is a cluster with a scheduler whose views are part of its API.
type stage struct {
	*env.Env
	// whole is the test by the end of which all ends, whatever part of it has begun something.
	whole *testing.T
	args  []string
	file  string
	// process is the scheduler that runs now.
	process *schedulerprocess.Process
}

func newStage(t *testing.T) *stage {
	t.Helper()
	e := env.New(t, localcluster.Options{Shapes: []string{"count=20,cpu=64,memory=512Gi,nvidia.com/gpu=8", "count=4,cpu=96,memory=384Gi"}})
	args, err := schedulerprocess.InstallViews(t.Context(), e.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{Env: e, whole: t, args: args, file: filepath.Join(t.TempDir(), "volcano-scheduler.conf")}
	if err := os.WriteFile(s.file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	s.startScheduler()
	return s
}

func (s *stage) startScheduler() {
	t := s.whole
	t.Helper()
	binary, err := schedulerprocess.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := schedulerprocess.Start(schedulerprocess.Options{
		Binary: binary, Dir: t.TempDir(), Config: config, Kubeconfig: s.Kubeconfig, Args: append([]string{"--volcano-conf=" + s.file}, s.args...),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.process = p
	t.Cleanup(func() {
		if _, err := p.Stop(); err != nil {
			t.Error(err)
		}
		if log, err := os.ReadFile(p.LogFile); err == nil && t.Failed() {
			t.Logf("the end of the scheduler's log:\n%s", log[max(0, len(log)-4000):])
		}
	})
}

// devices are so many GPUs, with the cores that go with them.
func devices(n int64) corev1.ResourceList {
	return corev1.ResourceList{gpu: *resource.NewQuantity(n, resource.DecimalSI), corev1.ResourceCPU: *resource.NewQuantity(6*n, resource.DecimalSI)}
}

func (s *stage) queue(t *testing.T, name, parent string, due, limit int64) {
	t.Helper()
	spec := volcano.QueueSpec{Weight: 1, Parent: parent, Deserved: devices(due)}
	if limit > 0 {
		spec.Capability = devices(limit)
	}
	q := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := s.Volcano.SchedulingV1beta1().Queues().Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// job is a job whose pods ask for so many GPUs each, with four cores for each of them.
func job(namespace, name, queue string, least, size, gpus int) env.Gang {
	return env.Gang{
		Name: name, Queue: queue, Min: least, Size: size, CPU: fmt.Sprint(max(1, 4*gpus)),
		Group: func(g *volcano.PodGroup) { g.Namespace = namespace },
		Pod: func(_ int, p *corev1.Pod) {
			p.Namespace = namespace
			if gpus > 0 {
				requests := p.Spec.Containers[0].Resources.Requests
				requests[gpu] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: requests[gpu]}
			}
		},
	}
}

// create creates jobs, many at a time.
func (s *stage) create(t *testing.T, jobs ...env.Gang) {
	t.Helper()
	errs := make([]error, len(jobs))
	workqueue.ParallelizeUntil(t.Context(), 16, len(jobs), func(i int) {
		group := jobs[i].PodGroup()
		if _, errs[i] = s.Volcano.SchedulingV1beta1().PodGroups(group.Namespace).Create(t.Context(), group, metav1.CreateOptions{}); errs[i] != nil {
			return
		}
		for _, p := range jobs[i].Members() {
			if _, errs[i] = s.Kube.CoreV1().Pods(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{}); errs[i] != nil {
				return
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// placed is a condition for env.Eventually: a job has so many pods with nodes.
func (s *stage) placed(namespace, name string, want int) func() string {
	return func() string {
		pods, err := s.Pods.Pods(namespace).List(everything)
		if err != nil {
			return err.Error()
		}
		got := 0
		for _, p := range pods {
			if p.Labels[env.GroupLabel] == name && p.Spec.NodeName != "" {
				got++
			}
		}
		if got < want {
			return fmt.Sprintf("%d pods of job %s/%s have nodes, want %d", got, namespace, name, want)
		}
		return ""
	}
}

// play fills the cluster: queues in a tree, of which one borrows all there is until the others take back what is theirs, and 1,000 jobs, of which some
// run and the others wait for one reason or another.
func (s *stage) play(t *testing.T) {
	t.Helper()
	for _, name := range []string{"ml", "vision", "web"} {
		if _, err := s.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []struct {
		name, parent string
		due, limit   int64
	}{
		{"research", "", 64, 0},
		{"vision", "research", 32, 48},
		{"language", "research", 32, 0},
		{"production", "", 64, 96},
		{"serving", "production", 40, 0},
		{"training", "production", 24, 0},
		{"batch", "", 32, 0},
		{"sweeps", "batch", 24, 0},
		{"nightly", "batch", 8, 16},
	} {
		s.queue(t, q.name, q.parent, q.due, q.limit)
	}
	s.create(t, job("ml", "sweep-all", "sweeps", 1, 160, 1))
	env.Eventually(t, patience, s.placed("ml", "sweep-all", 160))
	for _, owner := range []env.Gang{
		job("vision", "detector-a", "vision", 2, 2, 8), job("ml", "pretrain-7b", "language", 3, 3, 8), job("web", "ranker", "serving", 8, 8, 2),
		job("vision", "detector-b", "vision", 2, 2, 8), job("ml", "finetune", "training", 4, 4, 4),
	} {
		s.create(t, owner)
		env.Eventually(t, patience, s.placed(owner.PodGroup().Namespace, owner.Name, owner.Size))
	}
	var jobs []env.Gang
	for i := range 1000 {
		name := fmt.Sprintf("job-%04d", i)
		switch {
		case i < 40:
			jobs = append(jobs, job("web", name, "serving", 1, 2, 0))
		case i < 140:
			jobs = append(jobs, job("ml", name, "nightly", 1, 1, 1))
		case i < 240:
			jobs = append(jobs, job("ml", name, "language", 3, 1, 8))
		case i < 340:
			jobs = append(jobs, job("vision", name, "vision", 1, 1, 16))
		case i < 400:
			gated := job("web", name, "training", 1, 1, 1)
			change := gated.Pod
			gated.Pod = func(i int, p *corev1.Pod) {
				change(i, p)
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/data"}}
			}
			jobs = append(jobs, gated)
		default:
			jobs = append(jobs, job("ml", name, "sweeps", 1, 1, 8))
		}
	}
	s.create(t, jobs...)
	s.closeQueue(t, "nightly")
	s.loosen(t)
	if _, err := s.Kube.CoreV1().Nodes().Patch(t.Context(), s.nodes(t)[3].Name, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// loosen ends some pods of the job that has borrowed: a device is free here and there, which is of no use to jobs that ask for eight.
func (s *stage) loosen(t *testing.T) {
	t.Helper()
	pods, err := s.Pods.Pods("ml").List(labels.SelectorFromSet(labels.Set{env.GroupLabel: "sweep-all"}))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for i := 0; i < len(pods); i += 3 {
		if err := s.Kube.CoreV1().Pods("ml").Delete(t.Context(), pods[i].Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// closeQueue has a queue start no new jobs.
func (s *stage) closeQueue(t *testing.T, name string) {
	t.Helper()
	closed := []byte(`{"status":{"state":"Closed"}}`)
	if _, err := s.Volcano.SchedulingV1beta1().Queues().Patch(t.Context(), name, types.MergePatchType, closed, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) nodes(t *testing.T) []corev1.Node {
	t.Helper()
	list, err := s.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// read reads views from the cluster's API server, as any client does.
func read[L any](t *testing.T, s *stage, of string) *L {
	t.Helper()
	list := new(L)
	data, err := s.Kube.CoreV1().RESTClient().Get().AbsPath("/apis", v1alpha1.SchemeGroupVersion.String(), of).DoRaw(t.Context())
	if err == nil {
		err = json.Unmarshal(data, list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// rest waits until no job is about to start, and nothing is being evicted.
func (s *stage) rest(t *testing.T) {
	t.Helper()
	before := ""
	since := time.Now()
	env.Eventually(t, patience, func() string {
		var now strings.Builder
		jobs := read[v1alpha1.JobViewList](t, s, v1alpha1.JobViews)
		for _, j := range jobs.Items {
			reason := ""
			if j.Status.Reason != nil {
				reason = j.Status.Reason.Type
			} else if j.Status.Waiting {
				return fmt.Sprintf("nobody has looked at job %s/%s", j.Namespace, j.Name)
			}
			fmt.Fprintln(&now, j.Name, j.Status.Phase, reason, j.Status.Pods.Running)
		}
		for _, d := range read[v1alpha1.EvictionDecisionList](t, s, v1alpha1.EvictionDecisions).Items {
			if d.Status.Outcome == "Pending" {
				return "decision " + d.Name + " is pending"
			}
		}
		if now.String() != before {
			before, since = now.String(), time.Now()
		}
		if len(jobs.Items) < 1000 || time.Since(since) < 5*time.Second {
			return fmt.Sprintf("%d jobs, and they have changed %s ago", len(jobs.Items), time.Since(since))
		}
		return ""
	})
}

// viewer is the kubeconfig of somebody who may look into one namespace.
func (s *stage) viewer(t *testing.T, namespace string) string {
	t.Helper()
	const name = "viewer"
	accounts := s.Kube.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "caldera-viewer"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own := s.RESTConfig()
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: own.Host, CertificateAuthority: own.CAFile, CertificateAuthorityData: own.CAData}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: name, Namespace: namespace}
	config.CurrentContext = "local"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// command is the path of kubectl-caldera, which is built unless the environment names one.
func command(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(commandVariable); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "kubectl-caldera")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/caldera-scheduler/caldera/cmd/kubectl-caldera")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building kubectl-caldera: %v\n%s", err, out)
	}
	return path
}

// serve runs "kubectl caldera ui" until the test ends, and returns the address that it prints.
func serve(t *testing.T, binary, kubeconfig string) string {
	t.Helper()
	cmd := exec.Command(binary, "ui", "--kubeconfig", kubeconfig)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil || said.Len() > 0 {
			t.Errorf("kubectl caldera ui has ended with %v, and said on standard error %q", err, said.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("kubectl caldera ui prints no address: %v", err)
	}
	return strings.TrimSpace(line)
}

// end deletes a job with its pods.
func (s *stage) end(t *testing.T, namespace, name string) {
	t.Helper()
	if err := s.Volcano.SchedulingV1beta1().PodGroups(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	of := metav1.ListOptions{LabelSelector: env.GroupLabel + "=" + name}
	if err := s.Kube.CoreV1().Pods(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, of); err != nil {
		t.Fatal(err)
	}
}
