// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestWhatToDoAboutEachReason: docs/troubleshooting.md has a section for each reason that is told, and none for one that does not exist.
func TestWhatToDoAboutEachReason(t *testing.T) {
	source, err := os.ReadFile("reason.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`ReasonKind = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		known[m[1]] = true
		if m[1] != string(model.Unanswered) && !strings.Contains(string(page), "\n## "+m[1]+"\n") {
			t.Errorf("docs/troubleshooting.md has no section for %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(page), -1) {
		if strings.ContainsFunc(m[1][1:], unicode.IsUpper) && !known[m[1]] {
			t.Errorf("docs/troubleshooting.md has a section for %s, which no reason is called", m[1])
		}
	}
	if len(known) < 10 {
		t.Errorf("%d reasons were found in reason.go, where there are more", len(known))
	}
}
