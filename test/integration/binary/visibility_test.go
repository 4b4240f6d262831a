// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/evictions"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/explain"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/jobs"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/queues"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/status"
	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/pkg/preemption/archive"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// user is a service account and its kubeconfig, without any setting of TLS but the cluster's own authority.
func user(t *testing.T, e *env.Env, name string) string {
	t.Helper()
	accounts := e.Kube.CoreV1().ServiceAccounts(env.Namespace)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own := e.RESTConfig()
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: own.Host, CertificateAuthority: own.CAFile, CertificateAuthorityData: own.CAData}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: name, Namespace: env.Namespace}
	config.CurrentContext = "local"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// bind gives a service account a role in its namespace, or in the whole cluster.
func bind(t *testing.T, e *env.Env, account, role string, everywhere bool) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: account + "-" + role, Namespace: env.Namespace}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: env.Namespace, Name: account}}
	var err error
	if everywhere {
		meta.Namespace = ""
		_, err = e.Kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	} else {
		_, err = e.Kube.RbacV1().RoleBindings(env.Namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// commanding is held while a command reads its flags: commands of one process share those that libraries have added to its command line.
var commanding sync.Mutex

// command runs a command of kubectl caldera.
func command(ctx context.Context, cmd *cobra.Command, args ...string) (stdout, stderr string, err error) {
	read := sync.OnceFunc(commanding.Unlock)
	commanding.Lock()
	defer read()
	cmd.PersistentPreRun = func(*cobra.Command, []string) { read() }
	var out, errOut bytes.Buffer
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(ctx)
	return out.String(), errOut.String(), err
}

// leadersEndpoints are where the Service of views leads to.
func leadersEndpoints(t *testing.T, e *env.Env) string {
	t.Helper()
	list, err := e.Kube.DiscoveryV1().EndpointSlices(systemNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, s := range list.Items {
		for _, endpoint := range s.Endpoints {
			places = append(places, fmt.Sprintf("%s:%d", endpoint.Addresses[0], *s.Ports[0].Port))
		}
	}
	return strings.Join(places, " ")
}

// TestWhoMayLookSeesHisOwn has two schedulers with the shipped rights and leader election, and users who ask by way of the cluster's API server.
func TestWhoMayLookSeesHisOwn(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=8,memory=32Gi"}})
	apply(t, e, "deploy/namespace.yaml", "rbac/service-account.yaml", "rbac/roles.yaml", "rbac/bindings.yaml", "visibility/apiservice.yaml", "visibility/roles.yaml")
	own := kubeconfigOf(t, e)
	config, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "volcano-scheduler.conf")
	const evicting = "actions: enqueue, allocate, preempt, backfill\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n  - name: predicates\n"
	if err := os.WriteFile(conf, []byte(evicting), 0o600); err != nil {
		t.Fatal(err)
	}
	replicas := map[string]*schedulerprocess.Process{}
	for range 2 {
		args, err := schedulerprocess.ViewsArgs()
		if err != nil {
			t.Fatal(err)
		}
		port := strings.TrimPrefix(args[0], "--visibility-port=")
		replicas[port] = start(t, schedulerprocess.Options{Kubeconfig: own, Config: config, LeaderElection: true, Args: append(args, "-v=2", "--volcano-conf="+conf)})
	}
	for name, parent := range map[string]string{"own": "", "others": ""} {
		_, err := e.Volcano.SchedulingV1beta1().Queues().Create(t.Context(), &volcano.Queue{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: volcano.QueueSpec{Weight: 1, Parent: parent},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.Create(t, env.Gang{Name: "small", Queue: "own", Min: 2, Size: 8, CPU: "1"})
	e.Create(t, env.Gang{Name: "large", Queue: "own", Min: 9, Size: 9, CPU: "1"})
	e.CreateGroup(t, env.Gang{Name: "hidden", Queue: "others", Min: 3, Group: func(g *volcano.PodGroup) { g.Namespace = "elsewhere" }})
	env.Eventually(t, time.Minute, e.AllBound(t, "small", 8))

	viewer, operator := user(t, e, "viewer"), user(t, e, "operator")
	bind(t, e, "viewer", "view", false)
	bind(t, e, "operator", "caldera-operator", true)

	viewerSees(t, e, viewer)
	operatorSees(t, e, operator)
	clientsFind(t, e)
	leaderFalls(t, e, operator, replicas)
}

// viewerSees: a viewer of one namespace sees it, and is refused the rest.
func viewerSees(t *testing.T, e *env.Env, viewer string) {
	t.Helper()
	// The role view has the rules of views once the cluster's controller has put them there.
	env.Eventually(t, time.Minute, func() string {
		out, _, err := command(t.Context(), jobs.New(), "--kubeconfig", viewer)
		switch {
		case err != nil:
			return err.Error()
		case !strings.Contains(out, "NotEnoughResources") || strings.Contains(out, "hidden"):
			return "the jobs are\n" + out
		}
		return ""
	})
	out, said, err := command(t.Context(), explain.New(), "--kubeconfig", viewer, "large")
	if err != nil || !strings.Contains(said, "told to who may list nodes") || !strings.Contains(out, "insufficient cpu") || !strings.Contains(out, "PodGroup default/large, queue own: waits") {
		t.Errorf("explain says %v\n%s", err, out)
	}
	out, said, err = command(t.Context(), queues.New(), "--kubeconfig", viewer)
	if err != nil || !strings.Contains(out, "own") || strings.Contains(out, "others") || !strings.Contains(said, "You may not see all queues") {
		t.Errorf("the queues are %v, %s\n%s", err, said, out)
	}
	if out, _, err = command(t.Context(), evictions.New(), "--kubeconfig", viewer); err != nil || out != "No such evictions are remembered.\n" {
		t.Errorf("the evictions are %v\n%s", err, out)
	}
	for name, tc := range map[string]struct {
		cmd  *cobra.Command
		args []string
		what string
	}{
		"jobs of all namespaces":      {jobs.New(), []string{"-A"}, `cannot list resource "jobviews" in API group "visibility.caldera.dev" at the cluster scope`},
		"jobs of another namespace":   {jobs.New(), []string{"-n", "elsewhere"}, `cannot list resource "jobviews" in API group "visibility.caldera.dev" in the namespace "elsewhere"`},
		"a job of another namespace":  {explain.New(), []string{"elsewhere/hidden"}, `cannot get resource "jobviews" in API group "visibility.caldera.dev" in the namespace "elsewhere"`},
		"evictions of all namespaces": {evictions.New(), []string{"-A"}, `cannot list resource "evictiondecisions" in API group "visibility.caldera.dev" at the cluster scope`},
		"all queues":                  {queues.New(), []string{"-A"}, `cannot list resource "queueviews" in API group "visibility.caldera.dev" at the cluster scope`},
		"the scheduler":               {status.New(), nil, `cannot get resource "clusterviews" in API group "visibility.caldera.dev" at the cluster scope`},
	} {
		_, _, err := command(t.Context(), tc.cmd, append(tc.args, "--kubeconfig", viewer)...)
		if err == nil || !strings.Contains(err.Error(), `User "system:serviceaccount:default:viewer" `+tc.what) {
			t.Errorf("%s: the answer is %v", name, err)
		}
	}
}

// operatorSees: an operator sees all, and closes a queue.
func operatorSees(t *testing.T, e *env.Env, operator string) {
	t.Helper()
	env.Eventually(t, time.Minute, func() string {
		out, _, err := command(t.Context(), jobs.New(), "-A", "--kubeconfig", operator)
		if err != nil || !strings.Contains(out, "hidden") || !strings.Contains(out, "large") {
			return fmt.Sprintf("the jobs are %v\n%s", err, out)
		}
		return ""
	})
	out, _, err := command(t.Context(), queues.New(), "--resource", "cpu", "--kubeconfig", operator)
	if err != nil || !strings.Contains(out, "CPU HELD") || !strings.Contains(out, "others") {
		t.Errorf("the queues are %v\n%s", err, out)
	}
	out, _, err = command(t.Context(), status.New(), "--kubeconfig", operator)
	if err != nil || !strings.Contains(out, "1 NotEnoughResources") {
		t.Errorf("the status is %v\n%s", err, out)
	}
	// It reads whatever the scheduler decides by.
	out, said, err := command(t.Context(), explain.New(), "--kubeconfig", operator, "default/large")
	if err != nil || said != "" || !strings.Contains(out, "WOULD START WITH") || !strings.Contains(out, "more nodes like") {
		t.Errorf("explain says %v, %s\n%s", err, said, out)
	}
	out, _, err = command(t.Context(), queues.NewQueue(), "close", "others", "--kubeconfig", operator)
	if err != nil || out != "queue others is closed\n" {
		t.Errorf("closing a queue says %v, %s", err, out)
	}
	env.Eventually(t, time.Minute, func() string {
		out, _, err := command(t.Context(), queues.NewQueue(), "others", "--kubeconfig", operator)
		if err != nil || !strings.Contains(out, "Closed") || !strings.Contains(out, "hidden") {
			return fmt.Sprintf("the queue is %v\n%s", err, out)
		}
		return ""
	})
}

// clientsFind: the API is one of the cluster, for any client.
func clientsFind(t *testing.T, e *env.Env) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(e.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	served, err := client.ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, r := range served.APIResources {
		names[r.Name] = true
	}
	want := []string{v1alpha1.ClusterViews, v1alpha1.EvictionDecisions, v1alpha1.JobViews, v1alpha1.LocalQueueViews, v1alpha1.QueueHistories, v1alpha1.QueueViews}
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, want) {
		t.Errorf("the API has %v, want %v", got, want)
	}
	// What kubectl get asks for.
	raw, err := e.Kube.CoreV1().RESTClient().Get().AbsPath("/apis", v1alpha1.SchemeGroupVersion.String(), v1alpha1.JobViews).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(raw), `"kind":"Table"`) || !strings.Contains(string(raw), "NotEnoughResources") {
		t.Errorf("as a table the jobs are %v\n%s", err, raw)
	}
	// What kubectl explain asks for.
	paths, err := client.OpenAPIV3().Paths()
	if err != nil || paths["apis/visibility.caldera.dev/v1alpha1"] == nil {
		t.Errorf("the cluster does not describe the API: %v", err)
	}
}

// leaderFalls: another scheduler answers, and knows what was evicted.
func leaderFalls(t *testing.T, e *env.Env, operator string, replicas map[string]*schedulerprocess.Process) {
	t.Helper()
	e.PriorityClass(t, "high", 1000)
	e.Create(t, env.Gang{Name: "urgent", Queue: "own", Min: 2, Size: 2, CPU: "1", Group: func(g *volcano.PodGroup) { g.Spec.PriorityClassName = "high" }})
	env.Eventually(t, time.Minute, e.AllBound(t, "urgent", 2))
	// What was decided is written down within a second or so.
	remembered := func() []v1alpha1.EvictionDecision {
		out, said, err := command(t.Context(), evictions.New(), "-A", "-o", "json", "--kubeconfig", operator)
		var list v1alpha1.EvictionDecisionList
		if err = errors.Join(err, json.Unmarshal([]byte(out), &list)); err != nil {
			t.Fatalf("the evictions are %v\n%s\n%s", err, said, out)
		}
		return list.Items
	}
	var decisions []v1alpha1.EvictionDecision
	env.Eventually(t, time.Minute, func() string {
		decisions = remembered()
		kept, err := e.Kube.CoreV1().ConfigMaps(systemNamespace).Get(t.Context(), archive.Name(0), metav1.GetOptions{})
		switch {
		case len(decisions) == 0 || decisions[0].Status.Outcome != "Started":
			return fmt.Sprintf("the evictions are %+v", decisions)
		case err != nil:
			return err.Error()
		case time.Since(kept.ManagedFields[0].Time.Time) < 3*time.Second:
			return "the ledger has just changed"
		}
		return ""
	})
	where := leadersEndpoints(t, e)
	_, port, _ := strings.Cut(where, ":")
	leader := replicas[port]
	if leader == nil {
		t.Fatalf("views are at %q, and the schedulers' ports are %v", where, slices.Collect(maps.Keys(replicas)))
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	out, said, err := command(t.Context(), jobs.New(), "-A", "--kubeconfig", operator)
	if err != nil || !strings.Contains(out, "large") {
		t.Fatalf("after the leader was killed the jobs are %v\n%s\n%s", err, said, out)
	}
	if diff := cmp.Diff(decisions, remembered()); diff != "" {
		t.Errorf("the evictions that are remembered (-before,+after)\n%s", diff)
	}
	for _, p := range replicas {
		log, err := os.ReadFile(p.LogFile)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(strings.ToLower(line), "forbidden") {
				t.Errorf("the shipped rules forbid something: %s", line)
			}
		}
	}
	if now := leadersEndpoints(t, e); now == where || strings.Contains(now, " ") {
		t.Errorf("views are at %q, and were at %q", now, where)
	}
}
