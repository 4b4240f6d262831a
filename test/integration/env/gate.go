// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
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
)

// Gate is a webhook that keeps requests until it is opened.
type Gate struct {
	*httptest.Server
	opened chan struct{}
	// held counts the requests that it has kept, dryRuns those of them that would change nothing.
	held, dryRuns atomic.Int32
}

// CloseGate has the API server keep all requests of an operation on a resource in a namespace, from the moment it returns: for 30 seconds each,
// or until the gate is opened, which it is at the end of the test at the latest. To see that it is closed, probe makes such a request as a dry run.
func (e *Env) CloseGate(t *testing.T, namespace string, operation registrationv1.OperationType, rule registrationv1.Rule, probe func(context.Context) error) *Gate {
	t.Helper()
	g := &Gate{opened: make(chan struct{})}
	g.Server = httptest.NewTLSServer(http.HandlerFunc(g.review))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw})
	hooks := e.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	name := "gate-" + namespace
	_, err := hooks.Create(t.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name:              name + ".caldera.dev",
			ClientConfig:      registrationv1.WebhookClientConfig{URL: &g.URL, CABundle: ca},
			Rules:             []registrationv1.RuleWithOperations{{Operations: []registrationv1.OperationType{operation}, Rule: rule}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			SideEffects:       new(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			TimeoutSeconds: new(int32(30)), FailurePolicy: new(registrationv1.Fail),
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Open()
		if err := hooks.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		g.Close()
	})
	Eventually(t, time.Minute, func() string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := probe(ctx)
		if g.dryRuns.Load() == 0 {
			return fmt.Sprintf("requests are not kept: %v", err)
		}
		return ""
	})
	return g
}

// Open lets go of what is kept, and of all that comes later.
func (g *Gate) Open() {
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

// Held returns how many requests it has kept so far, but for dry runs.
func (g *Gate) Held() int { return int(g.held.Load()) }

// review allows a request, once the gate is open.
func (g *Gate) review(w http.ResponseWriter, r *http.Request) {
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
