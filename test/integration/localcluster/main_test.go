// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localcluster_test checks the local control plane that all other integration tests stand on.
package localcluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

// deadline bounds every wait of these tests; on an idle machine each takes a second or two.
const deadline = time.Minute

// shared is the cluster of all tests that need no special start.
var shared *localcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // a first build takes minutes
	defer cancel()
	crds, err := filepath.Abs("testdata/crds")
	if err == nil {
		shared, err = localcluster.Start(ctx, localcluster.Options{
			Nodes: 3, Shapes: []string{"cpu=32,memory=256Gi,nvidia.com/gpu=8,label:zone=a"}, CRDDirs: []string{crds},
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// start runs another cluster for one test.
func start(t *testing.T, o localcluster.Options) *localcluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := localcluster.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func clientOf(t *testing.T, c *localcluster.Cluster) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// newNamespace creates a namespace for one test.
func newNamespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	ns, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// newPod is a pod on the first node: no scheduler runs here.
func newPod(name string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PodSpec{
			NodeName:      "node-0000",
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "example.test/image"}},
		},
	}
}

func createPod(t *testing.T, client kubernetes.Interface, namespace string, pod *corev1.Pod) {
	t.Helper()
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitPod waits until done is true of the pod, which is nil when it does not exist.
func awaitPod(t *testing.T, client kubernetes.Interface, namespace, name, what string, done func(*corev1.Pod) bool) {
	t.Helper()
	pods := client.CoreV1().Pods(namespace)
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	await(t, what, &corev1.Pod{}, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return pods.Watch(ctx, o)
		},
	}, func(obj runtime.Object) bool {
		pod, _ := obj.(*corev1.Pod)
		return done(pod)
	})
}

// await waits for an object of a list to satisfy done, which gets nil for an object that is gone or never was.
func await(t *testing.T, what string, kind runtime.Object, lw cache.ListerWatcher, done func(runtime.Object) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var last runtime.Object
	empty := func(store cache.Store) (bool, error) { return len(store.List()) == 0 && done(nil), nil }
	_, err := watchtools.UntilWithSync(ctx, lw, kind, empty, func(e watch.Event) (bool, error) {
		last = e.Object
		if e.Type == watch.Deleted {
			return done(nil), nil
		}
		return done(e.Object), nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v; last seen: %+v", what, err, last)
	}
}

func hasPhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod != nil && pod.Status.Phase == phase }
}

func gone(pod *corev1.Pod) bool { return pod == nil }
