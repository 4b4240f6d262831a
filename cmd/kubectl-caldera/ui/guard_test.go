// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

const port = 8090

// secret is what only the page may show.
const secret = "what the user may read"

func guarded() (*guard, http.Handler) {
	g := newGuard(port)
	handler := g.protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, secret) }))
	return g, handler
}

// ask sends a request to the handler. A header of "" is left out.
func ask(handler http.Handler, method, host, target string, headers map[string]string) *http.Response {
	r := httptest.NewRequest(method, target, http.NoBody)
	r.Host = host
	for name, value := range headers {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestOnlyTheUsersOwnBrowserReads(t *testing.T) {
	g, handler := guarded()
	good := cookieName + "=" + g.cookie
	for name, tc := range map[string]struct {
		method, host, path string
		headers            map[string]string
		want               int
	}{
		"the page itself":                   {path: g.base + "api/jobs", headers: map[string]string{"Cookie": good, "Sec-Fetch-Site": "same-origin"}, want: 200},
		"by the other name of the machine":  {host: "localhost:8090", path: g.base, headers: map[string]string{"Cookie": good}, want: 200},
		"an address that was typed":         {path: g.base, headers: map[string]string{"Cookie": good, "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, want: 200},
		"its head only":                     {method: "HEAD", path: g.base, headers: map[string]string{"Cookie": good}, want: 200},
		"no cookie":                         {path: g.base + "api/jobs", want: 403},
		"another cookie":                    {path: g.base + "api/jobs", headers: map[string]string{"Cookie": cookieName + "=" + strings.Repeat("A", len(g.cookie))}, want: 403},
		"an empty cookie":                   {path: g.base + "api/jobs", headers: map[string]string{"Cookie": cookieName + "="}, want: 403},
		"the token in place of the cookie":  {path: g.base + "api/jobs?token=" + g.token, want: 403},
		"another host that leads here":      {host: "evil.example:8090", path: g.base, headers: map[string]string{"Cookie": good}, want: 421},
		"another port":                      {host: "127.0.0.1:9999", path: g.base, headers: map[string]string{"Cookie": good}, want: 421},
		"a name that begins like it":        {host: "127.0.0.1:8090.evil.example", path: g.base, headers: map[string]string{"Cookie": good}, want: 421},
		"no host":                           {host: " ", path: g.base, headers: map[string]string{"Cookie": good}, want: 421},
		"another site":                      {path: g.base + "api/jobs", headers: map[string]string{"Cookie": good, "Sec-Fetch-Site": "cross-site"}, want: 403},
		"a server at another port":          {path: g.base + "api/jobs", headers: map[string]string{"Cookie": good, "Sec-Fetch-Site": "same-site"}, want: 403},
		"another site, by an older browser": {path: g.base + "api/jobs", headers: map[string]string{"Cookie": good, "Origin": "https://evil.example"}, want: 403},
		"another port, by an older browser": {path: g.base + "api/jobs", headers: map[string]string{"Cookie": good, "Origin": "http://127.0.0.1:9999"}, want: 403},
		"a document without an origin":      {path: g.base + "api/jobs", headers: map[string]string{"Cookie": good, "Origin": "null"}, want: 403},
		"a path of another process":         {path: "/api/jobs", headers: map[string]string{"Cookie": good}, want: 404},
		"the start without a token":         {path: "/", headers: map[string]string{"Sec-Fetch-Site": "none"}, want: 403},
		"the start with another token":      {path: "/?token=" + strings.Repeat("A", len(g.token)), want: 403},
		"the start with an empty token":     {path: "/?token=", want: 403},
		"a token that another site tries":   {path: "/?token=" + g.token, headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, want: 403},
		"a token that another site frames":  {path: "/?token=" + g.token, headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, want: 403},
		"a form that another site sends":    {method: "POST", path: g.base + "api/jobs", headers: map[string]string{"Cookie": good}, want: 405},
		"a question whether it may":         {method: "OPTIONS", path: g.base + "api/jobs", headers: map[string]string{"Origin": "https://evil.example"}, want: 405},
		"something that writes":             {method: "DELETE", path: g.base + "api/jobs", headers: map[string]string{"Cookie": good}, want: 405},
	} {
		t.Run(name, func(t *testing.T) {
			method, host := "GET", "127.0.0.1:8090"
			if tc.method != "" {
				method = tc.method
			}
			if tc.host != "" {
				host = strings.TrimSpace(tc.host)
			}
			answer := ask(handler, method, host, tc.path, tc.headers)
			text := body(t, answer)
			if answer.StatusCode != tc.want || strings.Contains(text, secret) != (tc.want == 200) {
				t.Errorf("the answer is %d %q, want %d", answer.StatusCode, text, tc.want)
			}
			if len(answer.Cookies()) > 0 || strings.Contains(text, g.cookie) || strings.Contains(text, g.base) {
				t.Errorf("it tells the cookie or the path: %v %s", answer.Cookies(), text)
			}
			for header, want := range map[string]string{
				"Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
				"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store", "Access-Control-Allow-Origin": "",
			} {
				if got := answer.Header.Get(header); got != want {
					t.Errorf("%s is %q, want %q", header, got, want)
				}
			}
		})
	}
}

// The address that is printed gives the browser that opens it a cookie for the page, and no other path of any port of the machine.
func TestTheAddressLetsABrowserIn(t *testing.T) {
	g, handler := guarded()
	u, err := url.Parse(g.address())
	if err != nil {
		t.Fatal(err)
	}
	// A file that leads to it counts as another site.
	for _, from := range []map[string]string{nil, {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}} {
		answer := ask(handler, "GET", u.Host, u.RequestURI(), from)
		cookies := answer.Cookies()
		if answer.StatusCode != http.StatusOK || len(cookies) != 1 {
			t.Fatalf("the answer is %d with cookies %v", answer.StatusCode, cookies)
		}
		c := cookies[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != g.base || c.Domain != "" || len(g.base) < 12 {
			t.Errorf("the cookie is %s", c)
		}
		if text := body(t, answer); !strings.Contains(text, `content="0;url=`+g.base+`"`) || strings.Contains(text, secret) {
			t.Errorf("it leads to\n%s", text)
		}
		page := ask(handler, "GET", u.Host, g.base, map[string]string{"Cookie": c.Name + "=" + c.Value, "Sec-Fetch-Site": "same-origin"})
		if text := body(t, page); text != secret {
			t.Errorf("with the cookie the answer is %d %s", page.StatusCode, text)
		}
	}
	if other := newGuard(port); other.token == g.token || other.cookie == g.cookie || other.base == g.base || len(g.token) < 26 || len(g.cookie) < 26 {
		t.Errorf("the secrets of two commands are %+v and %+v", g, other)
	}
}
