// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// unanswered is how long nobody answers a request for an eviction: longer than it takes to see one that was answered.
const unanswered = 12 * time.Second

// gate is a webhook that keeps requests to delete pods until it is opened.
type gate struct {
	*httptest.Server
	opened chan struct{}
	// held counts the requests that it has kept, dryRuns those of them that would change nothing.
	held, dryRuns atomic.Int32
}

// closeGate has the API server keep all requests to delete pods, from the moment it returns. A pod that exists is needed to see that. The gate
// is opened at the end of the test at the latest.
func (s *scene) closeGate(pod string) *gate {
	s.t.Helper()
	g := &gate{opened: make(chan struct{})}
	g.Server = httptest.NewTLSServer(http.HandlerFunc(g.review))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw})
	hooks := s.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	const name = "keeps-deletes"
	_, err := hooks.Create(s.t.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name:         "keeps-deletes.caldera.dev",
			ClientConfig: registrationv1.WebhookClientConfig{URL: &g.URL, CABundle: ca},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Delete},
				Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: env.Namespace}},
			SideEffects:       new(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			TimeoutSeconds: new(int32(30)), FailurePolicy: new(registrationv1.Fail),
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		g.open()
		if err := hooks.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			s.t.Error(err)
		}
		g.Close()
	})
	env.Eventually(s.t, patience, func() string {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
		defer cancel()
		err := s.Kube.CoreV1().Pods(env.Namespace).Delete(ctx, pod, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if g.dryRuns.Load() == 0 {
			return fmt.Sprintf("requests to delete pods are not kept: %v", err)
		}
		return ""
	})
	return g
}

// open lets go of what is kept, and of all that comes later.
func (g *gate) open() {
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

// review answers that a pod may be deleted, once the gate is open.
func (g *gate) review(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case <-g.opened:
	default:
		if ptr.Deref(review.Request.DryRun, false) {
			g.dryRuns.Add(1)
		} else {
			g.held.Add(1)
		}
		<-g.opened
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// TestAGangIsNotTakenApartWhileEvictionsAreOnTheirWay: upstream asks the API server for victims while the next pods are scheduled. What a gang
// has beyond its minimum is one pod here, on a node or the other, and that is for the first of three pods, however long it takes.
func TestAGangIsNotTakenApartWhileEvictionsAreOnTheirWay(t *testing.T) {
	s := single(t, 2, byShares)
	s.fill(job("whole", "", 7, 8))
	gate := s.closeGate(s.Members(t, "whole")[0].Name)
	s.ordinary("first", "", "1", "urgent", 1000)
	env.Eventually(t, patience, func() string {
		if n := gate.held.Load(); n != 1 {
			return fmt.Sprintf("%d pods are to go for the first one, want 1", n)
		}
		return ""
	})
	one := func() string {
		if n := gate.held.Load(); n != 1 {
			return fmt.Sprintf("%d pods of the gang are to go, and it has one beyond its minimum", n)
		}
		return ""
	}
	s.ordinary("second", "", "1", "urgent", 1000)
	env.Eventually(t, patience, func() string { return s.tried("second") })
	env.Consistently(t, unanswered, one)
	s.ordinary("third", "", "1", "urgent", 1000)
	env.Eventually(t, patience, func() string { return s.tried("third") })
	env.Consistently(t, calm, one)
	gate.open()
	want := map[string]int{"whole": 7, "first": 1}
	s.holds(want)
	env.Consistently(t, calm, func() string {
		if got := s.running(); !maps.Equal(got, want) {
			return fmt.Sprintf("%v run, want %v", got, want)
		}
		return ""
	})
}

// tried returns what is amiss unless a pod was told that nothing can be done for it.
func (s *scene) tried(name string) string {
	s.t.Helper()
	pod, err := s.Kube.CoreV1().Pods(env.Namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return ""
		}
	}
	return fmt.Sprintf("pod %s was not tried yet", name)
}
