// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
)

// folders are the folders beside this file that hold a plugin: those whose package exports the constant Name. The others
// hold what plugins share.
func folders(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if constants, ok := declaration.(*ast.GenDecl); ok && constants.Tok == token.CONST && declares(constants, "Name") {
				found[filepath.Dir(name)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func declares(constants *ast.GenDecl, name string) bool {
	return slices.ContainsFunc(constants.Specs, func(spec ast.Spec) bool {
		value, ok := spec.(*ast.ValueSpec)
		return ok && slices.ContainsFunc(value.Names, func(i *ast.Ident) bool { return i.Name == name })
	})
}

// A folder is named after its plugin, so two plugins of one name, and a plugin that nobody listed, leave a folder over.
func TestEveryPluginIsListed(t *testing.T) {
	made := slices.Sorted(maps.Keys(plugins.Registry(core.New(core.Options{}))))
	if diff := cmp.Diff(made, slices.Sorted(slices.Values(names.All))); diff != "" {
		t.Errorf("names of plugins (-registry,+names)\n%s", diff)
	}
	var listed []string
	for _, name := range made {
		listed = append(listed, strings.ToLower(name))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(folders(t), listed); diff != "" {
		t.Errorf("plugins in the registry (-folders,+registry)\n%s", diff)
	}
}

func TestEveryPluginHasAUserPage(t *testing.T) {
	for _, folder := range folders(t) {
		page, err := os.ReadFile(filepath.Join(folder, "README.md"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, section := range []string{"## What it decides", "## Configuration", "## Example", "## Limits"} {
			if !strings.Contains(string(page), "\n"+section+"\n") {
				t.Errorf("%s/README.md has no section %q", folder, section)
			}
		}
	}
}
