// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/client"
)

func at(url string, timeout time.Duration) *client.Client {
	return client.New(&config.ExtenderArgs{URLPrefix: url, HTTPTimeout: metav1.Duration{Duration: timeout}})
}

func TestWhatComesOfACall(t *testing.T) {
	text := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		}
	}
	large := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"word": "`)
		for range 20 {
			_, _ = w.Write(bytes.Repeat([]byte("a"), 1<<20))
		}
		_, _ = io.WriteString(w, `"}`)
	}
	// The handler of a call that is given up learns of it when it has read the question.
	slow := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	for name, tc := range map[string]struct {
		server  http.HandlerFunc
		timeout time.Duration
		// wrong are parts of the error; none: the call succeeds.
		wrong []string
	}{
		"an answer":                         {server: text(http.StatusOK, `{"word": "yes", "more": 1}`)},
		"status 500 is told with its text":  {server: text(http.StatusInternalServerError, "out of licenses\n"), wrong: []string{"500 Internal Server Error", `"out of licenses"`}},
		"status 201 is not 200":             {server: text(http.StatusCreated, `{"word": "yes"}`), wrong: []string{"201 Created"}},
		"what is no JSON is quoted":         {server: text(http.StatusOK, "<html>"), wrong: []string{`"<html>"`, "invalid character"}},
		"nothing is no answer":              {server: text(http.StatusOK, ""), wrong: []string{"unexpected end"}},
		"a wrong type is told":              {server: text(http.StatusOK, `{"word": 1}`), wrong: []string{"cannot unmarshal number"}},
		"20 MB are not read to their end":   {server: large, wrong: []string{"http: request body too large"}},
		"a slow extender is not waited for": {server: slow, timeout: 50 * time.Millisecond, wrong: []string{"no answer in time", "httpTimeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.server)
			defer server.Close()
			if tc.timeout == 0 {
				tc.timeout = time.Minute
			}
			var answer struct{ Word string }
			err := at(server.URL+"/v1/", tc.timeout).Call(t.Context(), "verb", map[string]int{"a": 1}, &answer)
			if len(tc.wrong) == 0 {
				if err != nil || answer.Word != "yes" {
					t.Errorf("got %q and error %v", answer.Word, err)
				}
				return
			}
			if err == nil {
				t.Fatal("got no error")
			}
			for _, part := range append(tc.wrong, "asking the extender at "+server.URL+"/v1/verb: ") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got error %q, which does not say %q", err, part)
				}
			}
			if n := strings.Count(err.Error(), "http://"); n != 1 {
				t.Errorf("error %q names the URL %d times", err, n)
			}
		})
	}
}

func TestAnExtenderThatIsDown(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	err := at(server.URL, time.Minute).Call(t.Context(), "verb", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got error %v", err)
	}
}

func TestWhatIsSent(t *testing.T) {
	var method, path, kind, body string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		method, path, kind, body = r.Method, r.URL.Path, r.Header.Get("Content-Type"), string(data)
	}))
	defer server.Close()
	if err := at(server.URL+"/v1/", time.Minute).Call(t.Context(), "/verb", map[string]int{"a": 1}, nil); err != nil {
		t.Fatalf("an answer that nobody reads may be empty: %v", err)
	}
	if got := strings.Join([]string{method, path, kind, body}, " "); got != `POST /v1/verb application/json {"a":1}` {
		t.Errorf("sent %s", got)
	}
}
