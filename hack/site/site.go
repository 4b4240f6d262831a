// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

const (
	// home is the first page, and contents the one whose tables are the menu.
	home     = "README.md"
	contents = "docs/README.md"
)

//go:embed static
var static embed.FS

var layout = template.Must(template.ParseFS(static, "static/layout.html"))

// site is the documentation. Files are named by their paths from the root of the repository.
type site struct {
	files fs.FS
	// source is where files are read that are not of the site.
	source string
	pages  map[string]*page
	// images are the pictures that pages show.
	images map[string]bool
	menu   []section
}

// page is one file of the documentation.
type page struct {
	// Path is the file it is made of, URL its place in the site.
	Path, URL string
	Title     string
	Body      template.HTML
	// Headings are its sections.
	Headings []heading
	// sections are what is searched.
	sections []found
	// source is its text, root that text as it was parsed.
	source []byte
	root   ast.Node
}

// heading is a section of a page.
type heading struct {
	Text, Anchor string
	Level        int
}

// found is a section as the search has it.
type found struct {
	Page    string `json:"page"`
	URL     string `json:"url"`
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

// section is a part of the menu.
type section struct {
	Title string
	Pages []*page
}

// read reads all pages. An error names the page, and what is wrong with it.
func read(files fs.FS, source string) (*site, error) {
	s := &site{files: files, source: source, pages: map[string]*page{}, images: map[string]bool{}}
	names, err := fs.Glob(files, "*.md")
	if err != nil {
		return nil, fmt.Errorf("looking for pages: %w", err)
	}
	err = fs.WalkDir(files, "docs", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for pages: %w", err)
	}
	for _, name := range names {
		p := &page{Path: name, URL: urlOf(name)}
		if err := p.read(files); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		s.pages[name] = p
	}
	if err := s.readMenu(); err != nil {
		return nil, err
	}
	for _, p := range s.pages {
		if err := s.fill(p); err != nil {
			return nil, fmt.Errorf("reading %s: %w", p.Path, err)
		}
	}
	return s, nil
}

// urlOf is where the page of a file is.
func urlOf(name string) string {
	dir, base := path.Split(name)
	if base == "README.md" {
		return dir + "index.html"
	}
	return strings.TrimSuffix(name, ".md") + ".html"
}

// read reads a page and its sections.
func (p *page) read(files fs.FS) (err error) {
	if p.source, err = fs.ReadFile(files, p.Path); err != nil {
		return err
	}
	p.root = parse(p.source)
	each(p.root, func(h *ast.Heading) {
		p.Headings = append(p.Headings, heading{Text: words(h, p.source), Anchor: anchorOf(h), Level: h.Level})
	})
	if len(p.Headings) == 0 || p.Headings[0].Level != 1 {
		return errors.New("it does not begin with a title: # and some words")
	}
	p.Title = p.Headings[0].Text
	p.sections = sectionsOf(p)
	return nil
}

// fill writes what a page says, once all pages are read.
func (s *site) fill(p *page) (err error) {
	each(p.root, func(l *ast.Link) { s.lead(p, l) })
	each(p.root, func(i *ast.Image) {
		name := path.Join(path.Dir(p.Path), string(i.Destination))
		if _, statErr := fs.Stat(s.files, name); statErr != nil {
			err = cmp.Or(err, statErr)
		}
		s.images[name] = true
	})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	err = markdown.Renderer().Render(&body, p.source, p.root)
	p.Body = template.HTML(finish.Replace(body.String())) //nolint:gosec // The renderer leaves HTML out that is in the page.
	return err
}

// finish has what is wider than a screen scroll by itself, with the keyboard, too. A header of a table that says nothing is none.
var finish = strings.NewReplacer("<pre>", `<pre tabindex="0">`, "<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>",
	"<th></th>", "<td></td>")

// sectionsOf splits a page at its headings, for the search.
func sectionsOf(p *page) []found {
	var all []found
	for n := p.root.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		switch {
		case ok && h.Level == 1:
			all = append(all, found{Page: p.Title, URL: p.URL, Heading: p.Title})
		case ok:
			all = append(all, found{Page: p.Title, URL: p.URL + "#" + anchorOf(h), Heading: words(h, p.source)})
		case len(all) > 0:
			last := &all[len(all)-1]
			last.Text = strings.TrimSpace(last.Text + " " + words(n, p.source))
		}
	}
	return all
}

// lead has a link of a page lead to the same in the site. Where it is called by its file, it is called by its title there.
func (s *site) lead(from *page, l *ast.Link) {
	to := string(l.Destination)
	if strings.HasPrefix(to, "#") || strings.Contains(to, ":") {
		return
	}
	file, anchor, hasAnchor := strings.Cut(to, "#")
	if hasAnchor {
		anchor = "#" + anchor
	}
	name := path.Join(path.Dir(from.Path), file)
	p := s.pages[name]
	if p == nil {
		l.Destination = []byte(s.source + "/" + name + anchor)
		return
	}
	l.Destination = []byte(relative(from.URL, p.URL) + anchor)
	if strings.HasSuffix(words(l, from.source), ".md") {
		l.RemoveChildren(l)
		l.AppendChild(l, ast.NewString([]byte(p.Title)))
	}
}

// relative is the way from one place in the site to another.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

// readMenu makes the menu of the tables of contents: the title of each, and the pages that the first column of its rows links to. A folder stands for all
// pages in it.
func (s *site) readMenu() error {
	index := s.pages[contents]
	if index == nil || s.pages[home] == nil {
		return fmt.Errorf("there is no %s, or no %s", home, contents)
	}
	s.menu = []section{{Title: "start", Pages: []*page{s.pages[home], index}}}
	for _, t := range tables(index.root, index.source) {
		one := section{Title: t.title}
		for _, to := range t.links {
			name := path.Join(path.Dir(contents), to)
			if p := s.pages[name]; p != nil {
				one.Pages = append(one.Pages, p)
				continue
			}
			for _, other := range slices.Sorted(maps.Keys(s.pages)) {
				if path.Dir(other) == name {
					one.Pages = append(one.Pages, s.pages[other])
				}
			}
		}
		s.menu = append(s.menu, one)
	}
	return nil
}

// view is a page with all that the layout needs.
type view struct {
	*page
	Menu []section
	// Source is where the page's file is.
	Source string
}

// To is the way to a place in the site.
func (v view) To(url string) string { return relative(v.URL, url) }

// write writes the site into a folder, which is emptied first.
func (s *site) write(out string) error {
	if err := os.RemoveAll(out); err != nil {
		return fmt.Errorf("emptying %s: %w", out, err)
	}
	var sections []found
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		p := s.pages[name]
		var text bytes.Buffer
		if err := layout.Execute(&text, view{page: p, Menu: s.menu, Source: s.source + "/" + name}); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if err := put(out, p.URL, text.Bytes()); err != nil {
			return err
		}
		sections = append(sections, p.sections...)
	}
	for name := range s.images {
		image, err := fs.ReadFile(s.files, name)
		if err != nil {
			return fmt.Errorf("reading a picture: %w", err)
		}
		if err := put(out, name, image); err != nil {
			return err
		}
	}
	// A script, since pages that are read without a server may not fetch files.
	index, err := json.Marshal(sections)
	if err != nil {
		return fmt.Errorf("writing the index of the search: %w", err)
	}
	if err := put(out, "static/index.js", slices.Concat([]byte("const sections = "), index, []byte(";\n"))); err != nil {
		return err
	}
	for _, name := range []string{"static/style.css", "static/search.js", "static/icon.svg"} {
		content, err := static.ReadFile(name)
		if err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if err := put(out, name, content); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file of the site.
func put(out, name string, content []byte) error {
	file := filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // Servers read it.
		return fmt.Errorf("writing the site: %w", err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // Servers read it.
		return fmt.Errorf("writing the site: %w", err)
	}
	return nil
}
