// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// TestALostConnectionIsAskedOverAnother: of several requests on one connection each may be told in its own words that it is gone.
func TestALostConnectionIsAskedOverAnother(t *testing.T) {
	t.Parallel()
	over := func(text string) error {
		return fmt.Errorf("asking: %w", &url.Error{Op: "Get", URL: "https://127.0.0.1:1/apis", Err: errors.New(text)})
	}
	for text, want := range map[string]bool{
		"http2: client conn could not be established":                                      true,
		"http2: client connection lost":                                                    true,
		"http2: client connection force closed via ClientConn.Close":                       true,
		"http2: client conn is closed":                                                     true,
		"http2: invalid Connection request header":                                         false,
		"tls: failed to verify certificate: x509: certificate signed by unknown authority": false,
	} {
		if got := passing(over(text)); got != want {
			t.Errorf("%s: is it over soon? %v, want %v", text, got, want)
		}
	}
	if passing(errors.New("http2: client connection lost")) {
		t.Error("what is no error of a request is taken for one")
	}
}

// TestAnAnswerThatEndsInTheMiddleIsAskedForAgain: by a real server that hangs up, as the client of Kubernetes tells it.
func TestAnAnswerThatEndsInTheMiddleIsAskedForAgain(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"kind":`))
	}))
	defer server.Close()
	client, err := restFor(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Get().Resource(v1alpha1.JobViews).Do(t.Context()).Error(); !passing(err) {
		t.Errorf("%v is final", err)
	}
}
