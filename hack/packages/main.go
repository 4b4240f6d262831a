// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Packages prints the table of packages of docs/architecture.md: how long each is, its types with many methods, and what of this module it
// imports. Run with: go run ./hack/packages
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/caldera-scheduler/caldera/"

// many is how many methods a type has at most without being named in the table.
const many = 12

// listed is a package as go list tells of it.
type listed struct {
	ImportPath, Dir  string
	GoFiles, Imports []string
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	packages, err := list("./pkg/...")
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, "| package | lines | types with more than 12 methods | imports |")
	fmt.Fprintln(w, "|---|---|---|---|")
	for _, p := range packages {
		row, err := p.row()
		if err != nil {
			return err
		}
		fmt.Fprintln(w, row)
	}
	return w.Flush()
}

func list(pattern string) ([]listed, error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", pattern).Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("reading the list of packages: %w", err)
		}
		all = append(all, p)
	}
}

// row is the package's line of the table.
func (p *listed) row() (string, error) {
	lines, methods := 0, map[string]int{}
	for _, name := range p.GoFiles {
		if strings.HasPrefix(name, "zz_generated") {
			continue
		}
		n, err := p.read(name, methods)
		if err != nil {
			return "", err
		}
		lines += n
	}
	maps.DeleteFunc(methods, func(_ string, n int) bool { return n <= many })
	var big, imports []string
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		big = append(big, fmt.Sprintf("%s %d", name, methods[name]))
	}
	for _, i := range p.Imports {
		if rest, ours := strings.CutPrefix(i, module); ours {
			imports = append(imports, strings.TrimPrefix(rest, "pkg/"))
		}
	}
	return fmt.Sprintf("| %s | %d | %s | %s |", strings.TrimPrefix(p.ImportPath, module), lines, strings.Join(big, ", "), strings.Join(imports, ", ")), nil
}

// read counts the lines of a file, and adds to the methods of each type.
func (p *listed) read(name string, methods map[string]int) (lines int, err error) {
	source, err := os.ReadFile(filepath.Join(p.Dir, name))
	if err != nil {
		return 0, fmt.Errorf("reading package %s: %w", p.ImportPath, err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return 0, fmt.Errorf("reading package %s: %w", p.ImportPath, err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil {
			continue
		}
		t := f.Recv.List[0].Type
		if star, ok := t.(*ast.StarExpr); ok {
			t = star.X
		}
		if id, ok := t.(*ast.Ident); ok {
			methods[id.Name]++
		}
	}
	return bytes.Count(source, []byte("\n")), nil
}
