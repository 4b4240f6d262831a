// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark/ast"
	"golang.org/x/net/html"
)

const root = "../.."

// repository are the files of the repository, but for what is built.
func repository(t *testing.T) (files fs.FS, names []string) {
	t.Helper()
	files = os.DirFS(root)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (name == "_output" || name == ".git") {
			return fs.SkipDir
		}
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, names
}

// TestLinksLeadSomewhere: all pages of the repository link to files and sections that there are.
func TestLinksLeadSomewhere(t *testing.T) {
	files, names := repository(t)
	links := map[string][]string{}
	sections := map[string]map[string]bool{}
	for _, name := range names {
		if path.Ext(name) != ".md" {
			continue
		}
		source, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		tree := parse(source)
		sections[name] = map[string]bool{}
		each(tree, func(h *ast.Heading) { sections[name][anchorOf(h)] = true })
		each(tree, func(l *ast.Link) { links[name] = append(links[name], string(l.Destination)) })
		each(tree, func(i *ast.Image) { links[name] = append(links[name], string(i.Destination)) })
	}
	if len(links) < 40 {
		t.Errorf("%d pages have links, want all of docs", len(links))
	}
	for from, all := range links {
		for _, link := range all {
			if strings.Contains(link, "://") {
				continue
			}
			file, anchor, _ := strings.Cut(link, "#")
			to := from
			if file != "" {
				to = path.Join(path.Dir(from), file)
			}
			if !slices.Contains(names, to) {
				t.Errorf("%s links to %s, which is not there", from, link)
			} else if anchor != "" && !sections[to][anchor] {
				t.Errorf("%s links to %s, and %s has no such section", from, link, to)
			}
		}
	}
}

// built is a page of the site as a browser sees it.
type built struct {
	anchors map[string]bool
	// links and loaded are where its links lead to, and what it has the browser fetch.
	links, loaded []string
}

// open reads a page of the site.
func open(t *testing.T, file string) built {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // It is only read.
	tree, err := html.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	page := built{anchors: map[string]bool{}}
	for n := range tree.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				page.anchors[a.Val] = true
			case a.Key == "href" && n.Data == "a":
				page.links = append(page.links, a.Val)
			case a.Key == "src" || a.Key == "href":
				page.loaded = append(page.loaded, a.Val)
			}
		}
	}
	return page
}

// TestTheSite: each page of the documentation is in the menu, each link leads to a page, to a section of it, or to a file of the repository, and nothing is
// fetched from elsewhere.
func TestTheSite(t *testing.T) {
	files, _ := repository(t)
	s, err := read(files, "https://source")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := s.write(out); err != nil {
		t.Fatal(err)
	}
	pages := map[string]built{}
	for _, p := range s.pages {
		pages[p.URL] = open(t, filepath.Join(out, p.URL))
	}
	for url, page := range pages {
		for _, link := range page.links {
			file, outside := strings.CutPrefix(link, "https://source/")
			if outside {
				if file, _, _ = strings.Cut(file, "#"); file == "" {
					t.Errorf("%s links to nothing", url)
				} else if _, err := fs.Stat(files, path.Clean(file)); err != nil {
					t.Errorf("%s links to the file %s: %s", url, file, err)
				}
				continue
			}
			if strings.Contains(link, "://") {
				continue
			}
			to, anchor, _ := strings.Cut(link, "#")
			target, known := pages[path.Join(path.Dir(url), to)]
			if to == "" {
				target, known = page, true
			}
			if !known || anchor != "" && !target.anchors[anchor] {
				t.Errorf("%s links to %s: no such page or section", url, link)
			}
		}
		for _, file := range page.loaded {
			if _, err := os.Stat(filepath.Join(out, path.Dir(url), file)); err != nil {
				t.Errorf("%s needs %s: %s", url, file, err)
			}
		}
	}
	listed := map[string]bool{}
	for _, section := range s.menu {
		for _, p := range section.Pages {
			listed[p.Path] = true
		}
	}
	for name := range s.pages {
		if strings.HasPrefix(name, "docs/") && !listed[name] {
			t.Errorf("%s is not in the menu: name it in %s", name, contents)
		}
	}
}

// pagesOf are small sites' files.
func pagesOf(texts map[string]string) fstest.MapFS {
	files := fstest.MapFS{
		home:                {Data: []byte("# The project\n\nSee [docs/a.md](docs/a.md#one-thing).\n")},
		contents:            {Data: []byte("# All\n\n| to use it | |\n|---|---|\n| [a.md](a.md) | a |\n| [design](design) | b |\n")},
		"docs/a.md":         {Data: []byte("# `A` page\n\n## One thing\n\nIts <b>text</b>, `x < y`.\n\n## One thing\n\n[code](../pkg/a.go#L3), [b](design/b.md), [up](../README.md)\n\n![p](p.png)\n")},
		"docs/p.png":        {Data: []byte("png")},
		"docs/design/b.md":  {Data: []byte("# B\n\n<!-- not said -->\n")},
		"docs/design/c.txt": {Data: []byte("c")},
		"pkg/a.go":          {Data: []byte("package a\n")},
	}
	for name, text := range texts {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func TestAPage(t *testing.T) {
	s, err := read(pagesOf(nil), "https://source")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		home: `<h1 id="the-project">The project</h1>
<p>See <a href="docs/a.html#one-thing">A page</a>.</p>
`,
		"docs/a.md": `<h1 id="a-page"><code>A</code> page</h1>
<h2 id="one-thing">One thing</h2>
<p>Its <!-- raw HTML omitted -->text<!-- raw HTML omitted -->, <code>x &lt; y</code>.</p>
<h2 id="one-thing-1">One thing</h2>
<p><a href="https://source/pkg/a.go#L3">code</a>, <a href="../docs/design/b.html">b</a>, <a href="../index.html">up</a></p>
<p><img src="p.png" alt="p"></p>
`,
		"docs/design/b.md": "<h1 id=\"b\">B</h1>\n<!-- raw HTML omitted -->\n",
	}
	got := map[string]string{}
	for name := range want {
		got[name] = string(s.pages[name].Body)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
	var menu []string
	for _, section := range s.menu {
		menu = append(menu, section.Title+":")
		for _, p := range section.Pages {
			menu = append(menu, p.Title)
		}
	}
	if diff := cmp.Diff([]string{"start:", "The project", "All", "to use it:", "A page", "B"}, menu); diff != "" {
		t.Errorf("menu (-want,+got)\n%s", diff)
	}
	found := s.pages["docs/a.md"].sections
	want2 := []string{"docs/a.html A page:", "docs/a.html#one-thing One thing: Its text, x < y.", "docs/a.html#one-thing-1 One thing: code, b, up p"}
	var got2 []string
	for _, f := range found {
		got2 = append(got2, strings.TrimSpace(f.URL+" "+f.Heading+": "+f.Text))
	}
	if diff := cmp.Diff(want2, got2); diff != "" {
		t.Errorf("what is searched (-want,+got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"docs/p.png"}, slices.Collect(maps.Keys(s.images))); diff != "" {
		t.Errorf("pictures (-want,+got)\n%s", diff)
	}
}

func TestPagesThatCannotBe(t *testing.T) {
	for name, tc := range map[string]struct {
		pages map[string]string
		want  string
	}{
		"a page without a title":   {map[string]string{"docs/a.md": "## Later\n"}, "docs/a.md: it does not begin with a title"},
		"a picture that is gone":   {map[string]string{"docs/a.md": "# A\n\n![x](gone.png)\n"}, "docs/a.md: open docs/gone.png"},
		"no table of the contents": {map[string]string{contents: ""}, contents + ": it does not begin with a title"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(pagesOf(tc.pages), "https://source")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
