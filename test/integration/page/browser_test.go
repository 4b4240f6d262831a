// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// needed finds a program that the test cannot do without. On one's own machine the test is skipped where it is missing; CI installs it, and to skip
// the test there would be to say that it has passed.
func needed(t *testing.T, what string, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	said := fmt.Sprintf("no %s was found, as none of %q", what, names)
	if os.Getenv("CI") == "true" {
		t.Fatal(said)
	}
	t.Skip(said)
	return ""
}

// browser is a Chromium with one page open.
type browser struct {
	ctx context.Context
	// origin is where the page is.
	origin string

	// mu guards what the page has done so far.
	mu       sync.Mutex
	troubles []string
	// answers has what the command is taken to answer, by the path.
	answers map[string]string
}

// newBrowser starts a Chromium that ends with the test, and opens an address.
func newBrowser(t *testing.T, path, address string) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280, 800),
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"))
	if os.Geteuid() == 0 {
		// A Chromium of root's has no sandbox, and does not start unless it is told that this is known. It opens pages of this test only.
		options = append(options, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{origin: "http://" + u.Host, answers: map[string]string{}}
	var closePage context.CancelFunc
	b.ctx, closePage = chromedp.NewContext(allocator, chromedp.WithListener(b.see))
	t.Cleanup(closePage)
	call(t, b, network.Enable, network.EnableParams{})
	call(t, b, log.Enable, cdp.Empty{})
	call(t, b, performance.Enable, performance.EnableParams{})
	call(t, b, runtime.Enable, cdp.Empty{})
	b.do(t, chromedp.Navigate(address))
	return b
}

// newViews starts a Chromium that shows a view of the command's page.
func newViews(t *testing.T, path, address string) *browser {
	t.Helper()
	b := newBrowser(t, path, address)
	b.eventually(t, `document.querySelector("main")?.dataset.view ? "" : "no view is shown: " + document.body.textContent`)
	return b
}

// chromium is where the browser is.
func chromium(t *testing.T) string {
	t.Helper()
	return needed(t, "Chromium", cmp.Or(os.Getenv("CHROMIUM"), "chromium"), "chromium-browser", "google-chrome")
}

// prefers has the user prefer a colour scheme.
func (b *browser) prefers(t *testing.T, scheme string) {
	t.Helper()
	call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// see notes what has no place on the page: errors, and requests to anybody else.
func (b *browser) see(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	note := func(format string, args ...any) { b.troubles = append(b.troubles, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var said []string
			for _, a := range e.Args {
				said = append(said, string(a.Value)+a.Description)
			}
			note("console: %s", strings.Join(said, " "))
		}
	case *runtime.EventExceptionThrown:
		note("exception: %+v %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			note("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.origin+"/") {
			note("request: %s", e.Request.URL)
		}
	case *fetch.EventRequestPaused:
		go b.answer(e)
	}
}

// take returns what was noted, and forgets it.
func (b *browser) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.troubles
	b.troubles = nil
	return taken
}

// answer answers a request by what the test has laid down.
func (b *browser) answer(e *fetch.EventRequestPaused) {
	b.mu.Lock()
	text := ""
	for part, answer := range b.answers {
		if strings.Contains(e.Request.URL, "/api/"+part+"?") {
			text = answer
		}
	}
	b.mu.Unlock()
	var err error
	if text == "" {
		_, err = chromedp.Call(b.ctx, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: e.RequestID})
	} else {
		_, err = chromedp.Call(b.ctx, fetch.FulfillRequest, fetch.FulfillRequestParams{
			RequestID: e.RequestID, ResponseCode: http.StatusOK, Body: []byte(text),
			ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "application/json"}},
		})
	}
	_ = err // The page may have gone on, and want no answer any more.
}

// pretend has the page be answered by something, where it would be by the command. It is how the page shows what no cluster here can have.
func (b *browser) pretend(t *testing.T, answers map[string]any) {
	t.Helper()
	texts := map[string]string{}
	for path, answer := range answers {
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	b.mu.Lock()
	b.answers = texts
	b.mu.Unlock()
	call(t, b, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: b.origin + "/*/api/*"}}})
}

// honest ends pretending.
func (b *browser) honest(t *testing.T) {
	t.Helper()
	call(t, b, fetch.Disable, cdp.Empty{})
}

func (b *browser) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// script runs a program in the page.
func script(program string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](program)
}

// call is a command of the browser's own protocol.
func call[P, R any](t *testing.T, b *browser, command cdp.Command[P, R], parameters P) R {
	t.Helper()
	result, err := chromedp.Call(b.ctx, command, parameters)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// value is what an expression of the page comes to.
func value[V any](t *testing.T, b *browser, expression string) V {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[V](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// eventually waits until an expression of the page comes to "".
func (b *browser) eventually(t *testing.T, expression string) {
	t.Helper()
	env.Eventually(t, patience, func() string {
		said, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression))
		if err != nil {
			return err.Error()
		}
		return said
	})
}

// open goes to a view, and waits for its first answer.
func (b *browser) open(t *testing.T, hash, view string) {
	t.Helper()
	b.do(t, script(fmt.Sprintf(`document.querySelector("main").removeAttribute("data-view"); if (location.hash === %[1]q) { dispatchEvent(new HashChangeEvent("hashchange")) } else { location.hash = %[1]q }`, hash)))
	b.shown(t, view)
}

// shown waits until a view has been shown.
func (b *browser) shown(t *testing.T, view string) {
	t.Helper()
	b.eventually(t, fmt.Sprintf(`(v => v === %q ? "" : "the view is " + v + ", " + (document.querySelector(".error")?.textContent ?? ""))(document.querySelector("main").dataset.view)`, view))
}

// again waits until what is shown has been asked for twice more.
func (b *browser) again(t *testing.T) {
	t.Helper()
	now := value[int](t, b, `Number(document.querySelector("main").dataset.answers)`)
	b.eventually(t, fmt.Sprintf(`Number(document.querySelector("main").dataset.answers) >= %d ? "" : "it is not asked for again"`, now+2))
}

// rows are the texts of the cells of the first table.
func (b *browser) rows(t *testing.T) [][]string {
	t.Helper()
	return value[[][]string](t, b, `[...document.querySelectorAll("main table")[0].tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent))`)
}

// theme has the page be light or dark, by its own button.
func (b *browser) theme(t *testing.T, want string) {
	t.Helper()
	if value[string](t, b, `document.documentElement.dataset.theme`) != want {
		b.do(t, chromedp.Click(chromedp.CSS("#theme")))
	}
	if got := value[string](t, b, `document.documentElement.dataset.theme`); got != want {
		t.Fatalf("the theme is %s, want %s", got, want)
	}
}
