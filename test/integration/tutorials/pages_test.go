// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package tutorials_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	makeTarget = regexp.MustCompile(`\bmake ([a-z][-a-z]*)`)
	makeRule   = regexp.MustCompile(`(?m)^([a-z][-a-z]*):`)
	flagOf     = regexp.MustCompile(` (--[a-z][-a-z]*)`)
	ownCommand = regexp.MustCompile(`^(?:\S*/kubectl-caldera|kubectl caldera) ([a-z]+)( [a-z]+)?`)
)

// TestWhatAllPagesNameIsThere: pages that are not followed name no target of make, and no command and flag of kubectl caldera, that does not exist.
func TestWhatAllPagesNameIsThere(t *testing.T) {
	t.Parallel()
	root := project(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, rule := range makeRule.FindAllStringSubmatch(string(makefile), -1) {
		targets[rule[1]] = true
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		for _, s := range commandsOf(t, page) {
			for _, target := range makeTarget.FindAllStringSubmatch(s, -1) {
				if commands++; !targets[target[1]] {
					t.Errorf("%s: %s: the Makefile has no such target", filepath.Base(page), s)
				}
			}
			if own := ownCommand.FindString(s); own != "" {
				commands++
				checkFlags(t, filepath.Join(root, "_output", "bin", "kubectl-caldera"), s)
			}
		}
	}
	if commands < 50 {
		t.Errorf("%d commands were looked at, where there are more", commands)
	}
}

// commandsOf are all commands in the blocks of a page.
func commandsOf(t *testing.T, page string) []string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := blocksOf(string(data))
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	var all []string
	for _, b := range blocks {
		if b.language != "console" {
			continue
		}
		steps, err := b.steps()
		if err != nil {
			t.Fatalf("%s:%d: %v", page, b.line, err)
		}
		for _, s := range steps {
			all = append(all, s.command)
		}
	}
	return all
}

// checkFlags asks the help of a command of kubectl caldera for the flags that are used with it.
func checkFlags(t *testing.T, program, command string) {
	t.Helper()
	names := ownCommand.FindStringSubmatch(command)
	arguments := append([]string{names[1]}, strings.Fields(names[2])...)
	help, err := exec.CommandContext(t.Context(), program, append(arguments, "--help")...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v: %s", command, err, help)
		return
	}
	for _, flag := range flagOf.FindAllStringSubmatch(command, -1) {
		if !strings.Contains(string(help), flag[1]) {
			t.Errorf("%s: the command has no flag %s", command, flag[1])
		}
	}
	if !strings.Contains(string(help), "kubectl caldera "+names[1]) && !strings.Contains(string(help), "kubectl-caldera "+names[1]) {
		t.Errorf("%s: kubectl caldera has no command %s", command, names[1])
	}
}
