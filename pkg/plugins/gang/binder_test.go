// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/plugins/gang"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
)

// answers is a connection that loses the answers to binds, or all, or has others bind the pod first.
type answers struct {
	*memory.Server
	kind string
	// gets is how often it was asked what became of it.
	gets int
}

var errCut = errors.New("connection reset by peer")

// RoundTrip implements http.RoundTripper.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	bind := strings.HasSuffix(r.URL.Path, "/binding")
	if !bind {
		if a.gets++; a.kind == "down" || a.kind == "down for a while" && a.gets < 3 {
			return memory.Refuse(r, apierrors.NewInternalError(errCut))
		}
		return a.Server.RoundTrip(r)
	}
	switch a.kind {
	case "unreached":
		return nil, errCut
	case "refused":
		return memory.Refuse(r, apierrors.NewForbidden(schema.GroupResource{Resource: "pods/binding"}, "p", errors.New("no")))
	}
	second := r.Clone(r.Context())
	var err error
	if second.Body, err = r.GetBody(); err != nil {
		return nil, err
	}
	response, err := a.Server.RoundTrip(r)
	switch {
	case err != nil || a.kind == "":
		return response, err
	case a.kind == "repeated":
		return a.Server.RoundTrip(second)
	}
	return nil, errCut
}

func TestABindWhoseAnswerIsLostHasSucceeded(t *testing.T) {
	for kind, tc := range map[string]struct {
		want bool
		gets int
	}{
		"":                 {want: true},
		"lost":             {want: true, gets: 1},
		"repeated":         {want: true, gets: 1},
		"down for a while": {want: true, gets: 3},
		"down":             {want: false, gets: 4},
		"unreached":        {want: false, gets: 1},
		"refused":          {want: false},
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, err := memory.New(clock.RealClock{})
				if err != nil {
					t.Fatal(err)
				}
				pod := st.MakePod().Namespace("ns").Name("p").UID("u").Obj()
				if err := api.Add(pod); err != nil {
					t.Fatal(err)
				}
				through := &answers{Server: api.Server(), kind: kind}
				client, err := kubernetes.NewForConfig(memory.Config(through))
				if err != nil {
					t.Fatal(err)
				}
				if got := gang.Bind(t.Context(), client, pod, "node"); got != tc.want || through.gets != tc.gets {
					t.Errorf("it is bound: %t, after %d questions; want %t after %d", got, through.gets, tc.want, tc.gets)
				}
			})
		})
	}
}

// TestAPodThatSomebodyElseHasBoundIsNotBound: it is on another node, or another pod has its name.
func TestAPodThatSomebodyElseHasBoundIsNotBound(t *testing.T) {
	for name, there := range map[string]*corev1.Pod{
		"another node": st.MakePod().Namespace("ns").Name("p").UID("u").Node("other").Obj(),
		"another pod":  st.MakePod().Namespace("ns").Name("p").UID("later").Node("node").Obj(),
	} {
		t.Run(name, func(t *testing.T) {
			api, err := memory.New(clock.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			if err := api.Add(there); err != nil {
				t.Fatal(err)
			}
			client, err := kubernetes.NewForConfig(memory.Config(api.Server()))
			if err != nil {
				t.Fatal(err)
			}
			if gang.Bind(t.Context(), client, st.MakePod().Namespace("ns").Name("p").UID("u").Obj(), "node") {
				t.Error("it is taken for bound")
			}
		})
	}
}
