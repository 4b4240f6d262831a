// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

func TestServerReportsItsRealVersion(t *testing.T) {
	t.Parallel()
	version, err := clientOf(t, shared).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != "v1.37.1" || version.Major != "1" || version.Minor != "37" {
		t.Errorf("version is %+v, want v1.37.1", version)
	}
}

func TestCRDsAreServed(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"scheduling.volcano.sh/v1beta1", "example.test/v1"} {
		resources, err := clientOf(t, shared).Discovery().ServerResourcesForGroupVersion(group)
		if err != nil || len(resources.APIResources) == 0 {
			t.Errorf("resources of %s: %v, %v", group, resources, err)
		}
	}
}

func TestNodesAreSchedulable(t *testing.T) {
	t.Parallel()
	nodes, err := clientOf(t, shared).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "zone=a"})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 3 {
		t.Fatalf("%d nodes, want 3", len(nodes.Items))
	}
	for _, node := range nodes.Items {
		gpus := node.Status.Allocatable["nvidia.com/gpu"]
		if len(node.Spec.Taints) > 0 || node.Spec.Unschedulable || gpus.Value() != 8 {
			t.Errorf("%s: taints %v, unschedulable %v, %v GPUs", node.Name, node.Spec.Taints, node.Spec.Unschedulable, gpus.Value())
		}
	}
}

func TestKubeconfigIsPrivate(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(shared.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode of %s is %v, want 0600", shared.Kubeconfig, info.Mode().Perm())
	}
}

func TestServiceAccountTokenIsBoundByRBAC(t *testing.T) {
	t.Parallel()
	admin := clientOf(t, shared)
	ns := newNamespace(t, admin)
	ctx := t.Context()
	if _, err := admin.CoreV1().ServiceAccounts(ns).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RbacV1().RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kube-scheduler"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "reader", Namespace: ns}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := admin.CoreV1().ServiceAccounts(ns).CreateToken(ctx, "reader", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(shared.RESTConfig())
	config.BearerToken = token.Status.Token
	reader, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("listing pods in its own namespace: %v", err)
	}
	if _, err := reader.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing secrets: %v, want Forbidden", err)
	}
}

func TestClaimBindsToVolume(t *testing.T) {
	t.Parallel()
	client := clientOf(t, shared)
	ns, ctx := newNamespace(t, client), t.Context()
	class := ns // cluster-scoped objects take the name of the namespace
	if _, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner",
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	onNode := &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-0001"}},
		},
	}}}}
	if _, err := client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, StorageClassName: class, NodeAffinity: onNode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
			// What the scheduler's VolumeBinding plugin does in PreBind.
			ClaimRef: &corev1.ObjectReference{Namespace: ns, Name: "claim"},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().PersistentVolumeClaims(ns).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	claims := client.CoreV1().PersistentVolumeClaims(ns)
	await(t, "the claim to be bound", &corev1.PersistentVolumeClaim{}, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return claims.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return claims.Watch(ctx, o)
		},
	}, func(obj runtime.Object) bool {
		claim, ok := obj.(*corev1.PersistentVolumeClaim)
		return ok && claim.Status.Phase == corev1.ClaimBound
	})
}

func TestRestartOnTheSameDirectoryKeepsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // longer than a unix socket path may be
	first := start(t, localcluster.Options{Dir: dir, Nodes: 2})
	client := clientOf(t, first)
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, localcluster.Options{Dir: dir, Nodes: 2})
	if second.Server != first.Server {
		t.Errorf("server is at %s, was at %s", second.Server, first.Server)
	}
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("reading with the client of the first start: %v", err)
	}
	createPod(t, client, "default", newPod("after-restart", nil))
	awaitPod(t, client, "default", "after-restart", "a pod to run after the restart", hasPhase(corev1.PodRunning))
}

func TestTwoClustersRunSideBySide(t *testing.T) {
	t.Parallel()
	other := start(t, localcluster.Options{NoControllers: true, NoKubelets: true, NoDefaultCRDs: true, Nodes: 1})
	if other.Server == shared.Server || other.Dir == shared.Dir {
		t.Errorf("both clusters use %s and %s", other.Server, other.Dir)
	}
	client := clientOf(t, other)
	createPod(t, client, newNamespace(t, client), newPod("pod", nil)) // needs no controller
	if _, err := client.Discovery().ServerResourcesForGroupVersion("scheduling.volcano.sh/v1beta1"); !apierrors.IsNotFound(err) {
		t.Errorf("CRDs in a cluster without: %v", err)
	}
	if err := other.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(other.Dir); !os.IsNotExist(err) {
		t.Errorf("temporary directory %s after Stop: %v", other.Dir, err)
	}
}

func TestStartErrorsTellWhatToChange(t *testing.T) {
	t.Parallel()
	held := start(t, localcluster.Options{Dir: filepath.Join(t.TempDir(), "held"), NoControllers: true, NoKubelets: true})
	for name, tc := range map[string]struct {
		options localcluster.Options
		want    string
	}{
		"a bad node shape":                   {localcluster.Options{Shapes: []string{"gpu=8"}}, `resource "gpu"`},
		"a directory of another cluster":     {localcluster.Options{Dir: held.Dir}, "used by another running localcluster"},
		"a directory without CRDs":           {localcluster.Options{CRDDirs: []string{"."}}, "--crds .: no CRD"},
		"a feature gate that does not exist": {localcluster.Options{FeatureGates: []string{"Nonsense=true"}}, "Nonsense"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c, err := localcluster.Start(ctx, tc.options)
			if err == nil {
				t.Fatalf("started, want an error; stopping: %v", c.Stop())
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %q, want it to contain %q", err, tc.want)
			}
		})
	}
}

func awaitJob(t *testing.T, client kubernetes.Interface, ns, name, what string, done func(*batchv1.Job) bool) {
	t.Helper()
	jobs := client.BatchV1().Jobs(ns)
	await(t, what, &batchv1.Job{}, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return jobs.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return jobs.Watch(ctx, o)
		},
	}, func(obj runtime.Object) bool {
		job, ok := obj.(*batchv1.Job)
		return ok && job.Name == name && done(job)
	})
}

func awaitEvent(t *testing.T, client kubernetes.Interface, ns, reason string) {
	t.Helper()
	events := client.CoreV1().Events(ns)
	await(t, "event "+reason, &corev1.Event{}, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return events.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return events.Watch(ctx, o)
		},
	}, func(obj runtime.Object) bool {
		event, ok := obj.(*corev1.Event)
		return ok && event.Reason == reason
	})
}
