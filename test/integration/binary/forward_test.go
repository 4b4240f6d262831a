// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cri-streaming/pkg/streaming/portforward"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/jobs"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/status"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// kubelet forwards ports of pods, by the kubelet's own protocol, to ports of this machine: a pod's port is its process's.
type kubelet struct{ pods map[string]string }

// PortForward implements portforward.PortForwarder.
func (k kubelet) PortForward(ctx context.Context, name, _ string, port int32, stream io.ReadWriteCloser) error {
	if own := k.pods[name]; own != strconv.Itoa(int(port)) {
		return fmt.Errorf("pod %s does not listen on port %d, but on %q", name, port, own)
	}
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", k.pods[name]))
	if err != nil {
		return err
	}
	// Each end closes both, whichever ends first.
	go func() {
		_, _ = io.Copy(connection, stream)
		_ = connection.Close()
	}()
	_, _ = io.Copy(stream, connection)
	return connection.Close()
}

func (k kubelet) serve(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, k, r.PathValue("pod"), "", options, time.Minute, time.Minute, portforward.SupportedProtocols)
}

// newKubelet has a node whose kubelet forwards the ports of pods in the scheduler's namespace.
func newKubelet(t *testing.T, e *env.Env, pods map[string]string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/portForward/"+systemNamespace+"/{pod}", kubelet{pods}.serve)
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.CloseClientConnections)
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	nodes := e.Kube.CoreV1().Nodes()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "control"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if _, err := nodes.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The simulated kubelet writes the whole status once.
	env.Eventually(t, time.Minute, func() string {
		if node, err := nodes.Get(t.Context(), node.Name, metav1.GetOptions{}); err != nil || len(node.Status.Conditions) == 0 {
			return fmt.Sprintf("the node has no conditions: %v", err)
		}
		return ""
	})
	status := fmt.Appendf(nil, `{"status":{"addresses":[{"type":"InternalIP","address":%q}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, host, number)
	if _, err := nodes.Patch(t.Context(), node.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	for name := range pods {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "scheduler", Image: "none"}}},
		}
		if _, err = e.Kube.CoreV1().Pods(systemNamespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWithoutTheAPIThePodIsAsked: where no APIService is installed, the command forwards a port to the pod that leads, and to the one that leads next.
func TestWithoutTheAPIThePodIsAsked(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=8,memory=32Gi"}})
	// The shipped namespace takes no pods that are not hardened; those here stand for processes of the test.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	if _, err := e.Kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	apply(t, e, "rbac/service-account.yaml", "rbac/roles.yaml", "rbac/bindings.yaml", "visibility/roles.yaml")
	own, pods, replicas := kubeconfigOf(t, e), map[string]string{}, map[string]*schedulerprocess.Process{}
	for _, name := range []string{"caldera-0", "caldera-1"} {
		args, err := schedulerprocess.ViewsArgs()
		if err != nil {
			t.Fatal(err)
		}
		pods[name] = strings.TrimPrefix(args[0], "--visibility-port=")
		replicas[pods[name]] = start(t, schedulerprocess.Options{Kubeconfig: own, LeaderElection: true, Args: append(args, "--visibility-pod="+name, "-v=2")})
	}
	newKubelet(t, e, pods)
	e.Create(t, env.Gang{Name: "large", Min: 9, Size: 9, CPU: "1"})

	operator := user(t, e, "operator")
	bind(t, e, "operator", "caldera-operator", true)
	asked := []string{"-A", "--kubeconfig", operator}
	env.Eventually(t, time.Minute, func() string {
		if leadersEndpoints(t, e) == "" {
			return "no scheduler leads"
		}
		return ""
	})
	if _, _, err := command(t.Context(), jobs.New(), asked...); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("who may not forward ports is told %v", err)
	}
	bind(t, e, "operator", "cluster-admin", true)
	env.Eventually(t, time.Minute, func() string {
		_, _, err := command(t.Context(), status.New(), "--kubeconfig", operator, "--scheduler-namespace", "elsewhere")
		if err == nil || !strings.Contains(err.Error(), "no scheduler in namespace elsewhere says that it serves views") {
			return fmt.Sprintf("in a namespace without a scheduler: %v", err)
		}
		return ""
	})
	env.Eventually(t, time.Minute, func() string {
		out, said, err := command(t.Context(), jobs.New(), asked...)
		if err != nil || !strings.Contains(out, "NotEnoughResources") {
			return fmt.Sprintf("the jobs are %v\n%s\n%s", err, said, out)
		}
		return ""
	})
	where := leadersEndpoints(t, e)
	_, port, _ := strings.Cut(where, ":")
	if replicas[port] == nil {
		t.Fatalf("views are at %q, and the pods' ports are %v", where, pods)
	}
	if err := replicas[port].Kill(); err != nil {
		t.Fatal(err)
	}
	out, said, err := command(t.Context(), jobs.New(), asked...)
	if err != nil || !strings.Contains(out, "large") {
		t.Errorf("after the leader was killed the jobs are %v\n%s\n%s", err, said, out)
	}
	if now := leadersEndpoints(t, e); now == where {
		t.Errorf("views are at %q as before", now)
	}
	manyAskAtATime(t, asked)
}

// manyAskAtATime: one client answers several questions at a time, as the page has them. It opens one port-forward for all of them.
func manyAskAtATime(t *testing.T, args []string) {
	t.Helper()
	flags := leader.NewFlags()
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error {
		return flags.With(cmd, func(ctx context.Context, client *leader.Client) error {
			questions, ctx := errgroup.WithContext(ctx)
			for i := range 16 {
				questions.Go(func() error {
					if i%2 == 0 {
						return client.Get(ctx, v1alpha1.ClusterViews, "", v1alpha1.ClusterName, &v1alpha1.ClusterView{})
					}
					list := &v1alpha1.JobViewList{}
					if err := client.List(ctx, v1alpha1.JobViews, "", metav1.ListOptions{}, list); err != nil {
						return err
					}
					if len(list.Items) != 1 {
						return fmt.Errorf("there are %d jobs, want 1", len(list.Items))
					}
					return nil
				})
			}
			return questions.Wait()
		})
	}}
	flags.Add(cmd, true)
	if out, said, err := command(t.Context(), cmd, args...); err != nil {
		t.Errorf("of many questions at a time one is answered by %v\n%s\n%s", err, out, said)
	}
}
