// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestTheDocumentationInABrowser: the pages of the site are accessible, ask nobody else for anything, and are found by the words in them.
func TestTheDocumentationInABrowser(t *testing.T) {
	t.Parallel()
	path, source, dir := chromium(t), axe(t), t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "run", "./hack/site", "--out", dir)
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("making the site: %v\n%s", err, out)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	b := newBrowser(t, path, server.URL+"/index.html")
	look := func(page, scheme string) {
		b.prefers(t, scheme)
		b.do(t, chromedp.Navigate(server.URL+"/"+page))
		b.accessible(t, source, page+", "+scheme)
		if wide := value[int](t, b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
			t.Errorf("%s: the page is %d pixels too wide", page, wide)
		}
	}
	err := fs.WalkDir(os.DirFS(dir), ".", func(page string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(page, ".html") {
			look(page, "light")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// All pages have the same colours.
	look("docs/queues.html", "dark")
	b.do(t, chromedp.Navigate(server.URL+"/docs/design/0001-gangs.html"), chromedp.KeyEvent("/"))
	for _, step := range []struct{ typed, first, leads string }{
		{"half-gang-that-is-nowhere", "No section has all of these words.", ""},
		{"broken queues", "Broken queues in Queues", "/docs/queues.html#broken-queues"},
	} {
		b.do(t, script(`document.querySelector("#search").value = ""`), chromedp.KeyEvent(step.typed))
		b.eventually(t, fmt.Sprintf(`(text => text.startsWith(%q) ? "" : "first is found " + text)(document.querySelector("#found li")?.textContent ?? "nothing")`, step.first))
		if step.leads != "" {
			b.do(t, chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
			b.eventually(t, fmt.Sprintf(`(at => at.endsWith(%q) ? "" : "it leads to " + at)(location.href)`, step.leads))
		}
	}
	if troubles := b.take(); len(troubles) > 0 {
		t.Errorf("the pages have\n%s", strings.Join(troubles, "\n"))
	}
}
