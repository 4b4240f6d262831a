// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

// TestTheConfigurationOfArchivesIsRead: goreleaser's own types know every key of .goreleaser.yaml, and what it names is there.
func TestTheConfigurationOfArchivesIsRead(t *testing.T) {
	project, err := config.Load(root + "/.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if project.Version != 2 || len(project.Builds) != 1 || len(project.Archives) != 1 || len(project.Krews) != 1 {
		t.Fatalf("the file is of version %d, with %d builds, %d archives and %d manifests of krew; want 2, and one of each",
			project.Version, len(project.Builds), len(project.Archives), len(project.Krews))
	}
	build, archive, krew := project.Builds[0], project.Archives[0], project.Krews[0]
	if _, err := os.Stat(filepath.Join(root, build.Main, "main.go")); err != nil {
		t.Error(err)
	}
	// kubectl finds a plugin by the name of its program, and krew by that without kubectl.
	if build.Binary != "kubectl-caldera" || krew.Name != "caldera" {
		t.Errorf("the program is called %q and the plugin %q; want kubectl-caldera and caldera", build.Binary, krew.Name)
	}
	// Archives of two platforms must not have one name, and krew takes none without a licence.
	if name := archive.NameTemplate; !strings.Contains(name, "{{ .Os }}") || !strings.Contains(name, "{{ .Arch }}") {
		t.Errorf("archives are called %q, without the platform", name)
	}
	var license bool
	for _, f := range archive.Files {
		if _, err := os.Stat(filepath.Join(root, f.Source)); err != nil {
			t.Error(err)
		}
		license = license || f.Source == "LICENSE"
	}
	if !license {
		t.Error("archives have no LICENSE, without which krew takes none")
	}
}

// TestAMistypedKeyIsRefused: else the test above could not fail.
func TestAMistypedKeyIsRefused(t *testing.T) {
	text, err := os.ReadFile(root + "/.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.LoadReader(strings.NewReader(strings.Replace(string(text), "mod_timestamp:", "mod_timestmp:", 1))); err == nil {
		t.Error("a key that goreleaser does not have was read")
	}
}
