// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// constant is a constant of a text, with what its comment says.
type constant struct{ name, typ, value, comment string }

// comments are what the comments of a package say.
type comments struct {
	// fields are those of the fields of types, by TYPE.FIELD; types those of the types.
	fields, types map[string]string
	// constants are in the order of the files, which is that of their names.
	constants []constant
	files     []*ast.File
}

// read reads the comments of the package in a directory, without its tests and generated files.
func read(dir string) (*comments, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading a package: %w", err)
	}
	c := &comments{fields: map[string]string{}, types: map[string]string{}}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_generated") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("reading a package: %w", err)
		}
		c.files = append(c.files, file)
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				c.declared(g)
			}
		}
	}
	return c, nil
}

func (c *comments) declared(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			c.types[s.Name.Name] = text(s.Doc, g.Doc)
			if structure, ok := s.Type.(*ast.StructType); ok {
				c.structure(s.Name.Name, structure)
			}
		case *ast.ValueSpec:
			if g.Tok == token.CONST {
				c.constant(g, s)
			}
		}
	}
}

func (c *comments) structure(name string, s *ast.StructType) {
	for _, f := range s.Fields.List {
		for _, n := range f.Names {
			c.fields[name+"."+n.Name] = text(f.Doc)
		}
	}
}

// constant takes in a constant. One without a comment of its own has that of the constants that it is declared with, if it is the only one.
func (c *comments) constant(g *ast.GenDecl, s *ast.ValueSpec) {
	for i, n := range s.Names {
		if i >= len(s.Values) {
			continue
		}
		value := literal(s.Values[i])
		if value == "" {
			continue
		}
		typ := ""
		if id, ok := s.Type.(*ast.Ident); ok {
			typ = id.Name
		}
		comment := text(s.Doc)
		if comment == "" && len(g.Specs) == 1 {
			comment = text(g.Doc)
		}
		c.constants = append(c.constants, constant{n.Name, typ, value, comment})
	}
}

// upstream are constants of Kubernetes that ours are.
var upstream = map[string]string{
	"PodReasonUnschedulable":         corev1.PodReasonUnschedulable,
	"PodReasonSchedulingGated":       corev1.PodReasonSchedulingGated,
	"PodReasonPreemptionByScheduler": corev1.PodReasonPreemptionByScheduler,
}

// literal is the text that a constant is; empty if it is none.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value) // The parser has read it.
			return text
		}
	case *ast.SelectorExpr:
		return upstream[e.Sel.Name]
	}
	return ""
}

// text is that of the first comment there is, without the markers of generators.
func text(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if g == nil {
			continue
		}
		lines := slices.DeleteFunc(strings.Split(g.Text(), "\n"), func(line string) bool { return strings.HasPrefix(line, "+") })
		return strings.Join(lines, "\n")
	}
	return ""
}

// of is a comment without the name that it is about: what follows "NAME is" or "NAME:".
func of(name, comment string) string {
	rest, ok := strings.CutPrefix(comment, name)
	if !ok {
		return comment
	}
	for _, begin := range []string{" is ", " are ", ": ", " tells "} {
		if after, ok := strings.CutPrefix(rest, begin); ok && (begin != " tells " || strings.HasPrefix(after, "whether")) {
			return after
		}
	}
	return rest
}
