// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// cookieName is the name of the cookie that lets a browser in.
const cookieName = "caldera-ui"

// policy lets the page load nothing but what it is served with, and no other page frame it.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard keeps others away from what is read with the user's credentials: web sites that the user visits, and other users of the machine.
//
// Whoever knows the token in the printed address is given a cookie. Browsers send cookies to any port of a host. So the cookie is for paths below one
// that is random, too: a server of another user at another port never gets to see it.
type guard struct {
	hosts         []string
	token, cookie string
	// base is the path of the page; it begins and ends with a slash.
	base string
}

func newGuard(port int) *guard {
	return &guard{
		hosts: []string{fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("localhost:%d", port)},
		token: rand.Text(), cookie: rand.Text(), base: "/" + strings.ToLower(rand.Text()[:12]) + "/",
	}
}

// address is what the user opens.
func (g *guard) address() string { return "http://" + g.hosts[0] + "/?token=" + g.token }

// protect passes requests of the page on to a handler, without the base of their paths, and answers all others itself.
func (g *guard) protect(pages http.Handler) http.Handler {
	pages = http.StripPrefix(strings.TrimSuffix(g.base, "/"), pages)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cache-Control", "no-store")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "This page is only read: use GET.", http.StatusMethodNotAllowed)
		case !g.isHost(r.Host):
			http.Error(w, fmt.Sprintf("The host is %q, and has to be %s.", r.Host, strings.Join(g.hosts, " or ")), http.StatusMisdirectedRequest)
		case r.URL.Path == "/" && entering(r) && same(r.URL.Query().Get("token"), g.token):
			g.welcome(w)
		case !own(r):
			http.Error(w, "Another site has asked for this.", http.StatusForbidden)
		case !g.isKnown(r):
			http.Error(w, "Open the address that kubectl caldera ui has printed.", http.StatusForbidden)
		case !strings.HasPrefix(r.URL.Path, g.base):
			http.NotFound(w, r)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}

// isHost reports whether a request is for this machine by one of its own names. A name that somebody else has lead here is none.
func (g *guard) isHost(host string) bool { return slices.Contains(g.hosts, strings.ToLower(host)) }

// welcome gives a browser the cookie, and leads it to the page.
func (g *guard) welcome(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: g.cookie, Path: g.base, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(forward(g.base, g.base+"icon.svg")) // Who has gone needs no answer.
}

func (g *guard) isKnown(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(cookieName), func(c *http.Cookie) bool { return same(c.Value, g.cookie) })
}

// entering reports whether a request opens a page in a window. Whoever began it, what is answered is shown to the user only.
func entering(r *http.Request) bool {
	return r.Header.Get("Origin") == "" && oneOf(r.Header.Get("Sec-Fetch-Mode"), "", "navigate") && oneOf(r.Header.Get("Sec-Fetch-Dest"), "", "document")
}

// own reports whether no other site has begun a request: the page has, or the user. Another port of this machine is another site.
func own(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return oneOf(r.Header.Get("Sec-Fetch-Site"), "", "none", "same-origin") && (origin == "" || origin == "http://"+r.Host)
}

func oneOf(s string, of ...string) bool { return slices.Contains(of, s) }

// same compares secrets, in a time that does not depend on them.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
