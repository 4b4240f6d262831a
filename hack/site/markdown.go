// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// markdown reads and writes as GitHub does. HTML within a page is left out: there are only comments.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// noAnchor matches what GitHub leaves out of a heading's anchor.
var noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors gives headings the anchors that GitHub gives them.
type anchors map[string]bool

// Generate implements parser.IDs.
func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	anchor := strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(string(heading)), ""), " ", "-")
	unique := anchor
	for i := 1; a[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", anchor, i)
	}
	a[unique] = true
	return []byte(unique)
}

// Put implements parser.IDs.
func (a anchors) Put(anchor []byte) { a[string(anchor)] = true }

// parse reads a page.
func parse(source []byte) ast.Node {
	return markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
}

// each calls f for every node of one type.
func each[N ast.Node](root ast.Node, f func(N)) {
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if one, ok := n.(N); ok && entering {
			f(one)
		}
		return ast.WalkContinue, nil
	})
}

// words are the words in a node, as they are read.
func words(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch t := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(t.Segment.Value(source))
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if entering {
				b.Write(t.Lines().Value(source))
			}
		}
		if n.Type() == ast.TypeBlock || n.Kind() == ast.KindText && n.(*ast.Text).SoftLineBreak() {
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// anchorOf is the anchor of a heading.
func anchorOf(h *ast.Heading) string {
	id, _ := h.AttributeString("id")
	anchor, _ := id.([]byte)
	return string(anchor)
}

// table is a part of the contents: its title, and the links in its first column.
type table struct {
	title string
	links []string
}

// tables are the tables of a page.
func tables(root ast.Node, source []byte) []table {
	var all []table
	each(root, func(t *extast.Table) {
		one := table{title: words(t.FirstChild().FirstChild(), source)}
		for row := t.FirstChild().NextSibling(); row != nil; row = row.NextSibling() {
			each(row.FirstChild(), func(l *ast.Link) { one.links = append(one.links, string(l.Destination)) })
		}
		all = append(all, one)
	})
	return all
}
