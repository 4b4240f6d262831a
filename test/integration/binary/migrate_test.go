// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/migrate"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const volcanoNamespace = "volcano-system"

// TestAVolcanoClusterLearnsWhetherItCanSwitch has Volcano's workloads on a real API server, as its own manifests describe them, and jobs: one that fits, one
// whose queue has a parent that is not there.
func TestAVolcanoClusterLearnsWhetherItCanSwitch(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2})
	installVolcano(t, e, `actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: capacity
    enableHierarchy: true
  - name: deviceshare
  - name: nodeorder
    arguments:
      leastrequested.wieght: 2
`)
	orphan := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "orphan"}, Spec: volcano.QueueSpec{Weight: 1, Parent: "nowhere"}}
	if _, err := e.Volcano.SchedulingV1beta1().Queues().Create(t.Context(), orphan, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.Create(t, env.Gang{Name: "fits", Min: 2, Size: 2, CPU: "1"})
	e.Create(t, env.Gang{Name: "lost", Min: 2, Size: 2, CPU: "1", Queue: "orphan"})

	states := func(args ...string) (found map[string][]migrate.Finding, err error) {
		t.Helper()
		out, _, err := command(t.Context(), migrate.New(), append([]string{"check", "--kubeconfig", e.Kubeconfig, "-o", "json"}, args...)...)
		var findings []migrate.Finding
		if decodeErr := json.Unmarshal([]byte(out), &findings); decodeErr != nil {
			t.Fatalf("%v, %v\n%s", err, decodeErr, out)
		}
		found = map[string][]migrate.Finding{}
		for _, f := range findings {
			found[f.What] = append(found[f.What], f)
		}
		return found, err
	}
	want := func(found map[string][]migrate.Finding, what string, s migrate.State, says string) {
		t.Helper()
		for _, f := range found[what] {
			if f.State == s && strings.Contains(f.Found+" "+f.Do, says) {
				return
			}
		}
		t.Errorf("of %s is said %+v, want %s: %s\n%+v", what, found[what], s, says, found)
	}

	found, err := states()
	if err != nil {
		t.Errorf("nothing stops the cluster, and it is said: %v", err)
	}
	want(found, "Kubernetes", migrate.OK, "the API server is v1.")
	want(found, "definitions", migrate.ToDo, "kustomization.yaml")
	want(found, "Deployment volcano-system/volcano-controllers", migrate.OK, "which stays")
	want(found, "Deployment volcano-system/volcano-scheduler", migrate.ToDo, "scale it to 0")
	want(found, "Deployment volcano-system/volcano-scheduler", migrate.Differs, `--node-selector is "pool:batch"`)
	want(found, "volcano-scheduler.conf", migrate.OK, "ConfigMap volcano-system/volcano-scheduler-configmap")
	want(found, "tiers[1].plugins[2].arguments[leastrequested.wieght]", migrate.ToDo, "leastrequested.weight")
	want(found, "rights", migrate.ToDo, "rbac-optional/deviceshare.yaml")
	want(found, "the first minutes", migrate.OK, "places 2 more pods; 1 job waits on")
	want(found, "queues", migrate.ToDo, env.Namespace+"/lost")

	table, _, err := command(t.Context(), migrate.New(), "check", "--kubeconfig", e.Kubeconfig)
	if err != nil || !strings.HasPrefix(table, "STATE ") || !strings.Contains(table, "\nThis cluster can switch once ") {
		t.Errorf("for people it is %v\n%s", err, table)
	}

	found, err = states("--only-scheduler")
	if err != nil {
		t.Error(err)
	}
	want(found, "kube-scheduler", migrate.Unknown, "let Caldera run beside it")

	broken := filepath.Join(t.TempDir(), "broken.conf")
	if err := os.WriteFile(broken, []byte("actions: \"alocate\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err = states("--conf", broken); err == nil || !strings.Contains(err.Error(), "cannot switch: 1 line stops it") {
		t.Errorf("with a configuration that is broken it is said: %v", err)
	}
	want(found, broken, migrate.Stops, `"alocate"`)

	lead(t, e)
	if found, err = states(); err == nil {
		t.Error("two schedulers place the same pods, and nothing is said")
	}
	want(found, "Caldera", migrate.Stops, "both place the same pods")
	scale := []byte(`{"spec":{"replicas":0}}`)
	if _, err := e.Kube.AppsV1().Deployments(volcanoNamespace).Patch(t.Context(), "volcano-scheduler", types.MergePatchType, scale, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if found, err = states(); err != nil {
		t.Error(err)
	}
	want(found, "Caldera", migrate.OK, "leads already")
	want(found, "Deployment volcano-system/volcano-scheduler", migrate.OK, "does not run")

	out, _, err := command(t.Context(), migrate.New(), "check", "--kubeconfig", user(t, e, "nobody"))
	if err != nil || !strings.Contains(out, "unknown") || !strings.Contains(out, "is forbidden") || strings.Contains(out, "stops") {
		t.Errorf("who may read nothing is told %v\n%s", err, out)
	}
}

// installVolcano creates what Volcano's installation has of Deployments, and its configuration.
func installVolcano(t *testing.T, e *env.Env, conf string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: volcanoNamespace}}
	if _, err := e.Kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const mapName = "volcano-scheduler-configmap"
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: mapName}, Data: map[string]string{"volcano-scheduler.conf": conf}}
	if _, err := e.Kube.CoreV1().ConfigMaps(volcanoNamespace).Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]corev1.Container{
		"volcano-scheduler": {
			Image: "docker.io/volcanosh/vc-scheduler:v1.14.0",
			Args: []string{
				"--logtostderr", "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf", "--enable-healthz=true", "--node-selector=pool:batch", "-v=3", "2>&1",
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "scheduler-config", MountPath: "/volcano.scheduler"}},
		},
		"volcano-controllers": {Image: "docker.io/volcanosh/vc-controller-manager:v1.14.0"},
		"volcano-admission":   {Image: "docker.io/volcanosh/vc-webhook-manager:v1.14.0"},
		"somebody-elses":      {Image: "nginx"},
	} {
		labels := map[string]string{"app": name}
		c.Name = name
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
					Containers: []corev1.Container{c},
					Volumes: []corev1.Volume{{Name: "scheduler-config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: mapName},
					}}}},
				}},
			},
		}
		if _, err := e.Kube.AppsV1().Deployments(volcanoNamespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// lead takes Caldera's lease.
func lead(t *testing.T, e *env.Env) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	if _, err := e.Kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "caldera-scheduler"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("somebody"), LeaseDurationSeconds: new(int32(600)), RenewTime: &metav1.MicroTime{Time: time.Now()},
	}}
	if _, err := e.Kube.CoordinationV1().Leases(systemNamespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
