// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	helmkube "helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

// upgradeTaking is helm upgrade with --take-ownership and --force-conflicts.
func (r *controlPlane) upgradeTaking(t *testing.T, with string, ownership, fields bool) error {
	t.Helper()
	upgrade := action.NewUpgrade(r.helm(t))
	upgrade.Namespace, upgrade.Timeout, upgrade.WaitStrategy = namespace, timeout, helmkube.HookOnlyStrategy
	upgrade.TakeOwnership, upgrade.ForceConflicts = ownership, fields
	_, err := upgrade.Run(release, load(t), values(t, with))
	return err
}

// TestWhatTheSchedulerWroteIsTakenOverByTwoFlags, as docs/install.md says: the queue default, and the authority of its own certificate.
func TestWhatTheSchedulerWroteIsTakenOverByTwoFlags(t *testing.T) {
	t.Parallel()
	r := start(t, localcluster.Options{NoControllers: true})
	r.install(t, "")
	byScheduler := metav1.CreateOptions{FieldManager: "kube-scheduler"}
	queue := named(queueKind, "", "default")
	queue.Object["spec"] = map[string]any{"weight": int64(1)}
	queues := r.dynamic.Resource(schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "queues"})
	if _, err := queues.Create(t.Context(), queue, byScheduler); err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"caBundle": []byte("its own")}})
	if err != nil {
		t.Fatal(err)
	}
	services := r.dynamic.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	const service = "v1alpha1.visibility.caldera.dev"
	if _, err := services.Patch(t.Context(), service, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "caldera"}); err != nil {
		t.Fatal(err)
	}
	bundle := func() string {
		t.Helper()
		live, err := services.Get(t.Context(), service, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		encoded, _, _ := unstructured.NestedString(live.Object, "spec", "caBundle")
		text, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}

	if err := r.upgradeTaking(t, "replicas: 1", false, false); err != nil || bundle() != "its own" {
		t.Errorf("an upgrade has the authority %q and the error %v, want the scheduler's own kept", bundle(), err)
	}
	const (
		owned   = "invalid ownership metadata"
		written = "Apply failed with 1 conflict"
	)
	for name, tc := range map[string]struct {
		with, plain, taking string
		taken               func() bool // Looked at after the upgrade of the case: one without its value gives the field up again.
	}{
		"queue": {
			with: "queues: [{name: default, spec: {weight: 3}}]", plain: owned, taking: written,
			taken: func() bool { return r.weight(t, "default") == 3 },
		},
		"authority": {
			with: `visibility: {existingSecret: views, caBundle: "another"}`, plain: written, taking: written,
			taken: func() bool { return bundle() == "another" },
		},
	} {
		if err := r.upgradeTaking(t, tc.with, false, false); err == nil || !strings.Contains(err.Error(), tc.plain) {
			t.Errorf("%s: got %v without a flag, want %s", name, err, tc.plain)
		}
		if err := r.upgradeTaking(t, tc.with, true, false); err == nil || !strings.Contains(err.Error(), tc.taking) {
			t.Errorf("%s: got %v with --take-ownership, want %s", name, err, tc.taking)
		}
		if err := r.upgradeTaking(t, tc.with, true, true); err != nil || !tc.taken() {
			t.Errorf("%s: got %v with both flags, the queue's weight %d and the authority %q", name, err, r.weight(t, "default"), bundle())
		}
	}
}
