// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release_test makes what a release consists of, without a registry to be reached, and looks into it.
package release_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const root = "../.."

// user is who the scheduler runs as, by the base image.
const user = "65532"

// base serves a base image for the platforms of .ko.yaml, with nobody's files in it, and returns its name. That of releases is in a registry
// which tests do not reach; like this one it has a user without rights.
func base(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	index := v1.ImageIndex(empty.Index)
	for _, arch := range []string{"amd64", "arm64"} {
		image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: arch, Config: v1.Config{User: user}})
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/base:nonroot")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	return ref.Name()
}

// made is what ko makes of the scheduler by .ko.yaml.
type made struct {
	images []v1.Image
	// documents are the bills of materials, by their files.
	documents map[string][]byte
}

// build runs ko as make images does, but for a base image that is at hand, and for one platform unless CALDERA_PLATFORMS names others: to
// compile the scheduler for another one takes minutes.
func build(t *testing.T) made {
	t.Helper()
	ko := os.Getenv("CALDERA_KO")
	if ko == "" {
		t.Fatal("CALDERA_KO has to name the program ko: run this with make test-release")
	}
	dir, err := os.MkdirTemp("", "release") //nolint:usetesting // ko takes the directory for a name, which has no capital letters.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	to, documents := filepath.Join(dir, "layout"), filepath.Join(dir, "documents")
	if err := os.Mkdir(documents, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(ko, "build", "--push=false", "--bare", "--oci-layout-path="+to, "--sbom-dir="+documents,
		"--platform="+cmp.Or(os.Getenv("CALDERA_PLATFORMS"), "linux/"+runtime.GOARCH), "./cmd/kube-scheduler")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "KO_DEFAULTBASEIMAGE="+base(t), "KO_DOCKER_REPO=registry.invalid/caldera-scheduler", "KOCACHE=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("running ko: %v\n%s", err, out)
	}
	m := made{images: images(t, to), documents: map[string][]byte{}}
	files, err := filepath.Glob(documents + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if m.documents[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// images are those of a layout, of all platforms.
func images(t *testing.T, dir string) []v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []v1.Image
	var walk func(v1.ImageIndex)
	walk = func(index v1.ImageIndex) {
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range manifest.Manifests {
			if d.MediaType.IsIndex() {
				below, err := index.ImageIndex(d.Digest)
				if err != nil {
					t.Fatal(err)
				}
				walk(below)
				continue
			}
			image, err := index.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, image)
		}
	}
	walk(index)
	return all
}

// TestTheImageIsWhatTheDeploymentExpects: it runs as a user without rights, has the scheduler as its command, and the licence. The bill of
// materials has every module that the scheduler is linked from, with its version.
func TestTheImageIsWhatTheDeploymentExpects(t *testing.T) {
	m := build(t)
	if len(m.images) == 0 {
		t.Fatal("ko made no image")
	}
	for _, image := range m.images {
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Config.User != user {
			t.Errorf("the image runs as %q, want %s as in manifests/deploy/deployment.yaml", config.Config.User, user)
		}
		if len(config.Config.Entrypoint) != 1 || path.Base(config.Config.Entrypoint[0]) != "kube-scheduler" {
			t.Fatalf("the image's command is %q, want kube-scheduler alone, as the Deployment gives only arguments", config.Config.Entrypoint)
		}
		binary := file(t, image, config.Config.Entrypoint[0])
		license, err := os.ReadFile(root + "/LICENSE")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(file(t, image, "/var/run/ko/LICENSE"), license) {
			t.Error("the licence in the image is not ours")
		}
		isStatic(t, binary)
		info, err := buildinfo.Read(bytes.NewReader(binary))
		if err != nil {
			t.Fatal(err)
		}
		checkSettings(t, info, config.Architecture)
		if config.Architecture == runtime.GOARCH && runtime.GOOS == "linux" {
			tellsItsVersion(t, binary)
		}
		m.lists(t, info, image)
	}
}

// file is the content of a file of an image.
func file(t *testing.T, image v1.Image, name string) []byte {
	t.Helper()
	flat := mutate.Extract(image)
	defer func() { _ = flat.Close() }()
	for r := tar.NewReader(flat); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("the image has no file %s", name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if path.Join("/", h.Name) == name {
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
}

// isStatic fails if a program needs libraries, which the base image does not have.
func isStatic(t *testing.T, binary []byte) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("the scheduler needs the libraries %v (%v)", libraries, err)
	}
}

// checkSettings fails if the scheduler was built other than make does.
func checkSettings(t *testing.T, info *debug.BuildInfo, arch string) {
	t.Helper()
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	for key, want := range map[string]string{"-trimpath": "true", "CGO_ENABLED": "0", "GOOS": "linux", "GOARCH": arch} {
		if settings[key] != want {
			t.Errorf("the scheduler was built with %s %q, want %q", key, settings[key], want)
		}
	}
}

// tellsItsVersion fails if the scheduler does not say by which Kubernetes it is known, as clients refuse one that they cannot read.
func tellsItsVersion(t *testing.T, binary []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kube-scheduler")
	if err := os.WriteFile(file, binary, 0o700); err != nil { //nolint:gosec // It is a program.
		t.Fatal(err)
	}
	out, err := exec.Command(file, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "Kubernetes ")
	if !ok || !strings.Contains(os.Getenv("VERSION_LDFLAGS"), "k8s.io/component-base/version.gitVersion="+version+" ") {
		t.Errorf("--version says %q, want Kubernetes with the version in VERSION_LDFLAGS", out)
	}
}

// document is what is read of a bill of materials (SPDX 2.3).
type document struct {
	Packages []struct {
		Name, VersionInfo string
	}
}

// lists fails if no bill of materials is of an image, or it lacks a module of its program.
func (m made) lists(t *testing.T, info *debug.BuildInfo, image v1.Image) {
	t.Helper()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for name, data := range m.documents {
		if !bytes.Contains(data, []byte(digest.Hex)) || strings.Contains(name, "index") {
			continue
		}
		var d document
		if err := json.Unmarshal(data, &d); err != nil {
			t.Fatalf("reading %s: %v", name, err)
		}
		for _, p := range d.Packages {
			listed = append(listed, p.Name+"@"+p.VersionInfo)
		}
	}
	if len(info.Deps) < 100 {
		t.Errorf("the scheduler is linked from %d modules, want more than 100", len(info.Deps))
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		if !slices.Contains(listed, module.Path+"@"+module.Version) {
			t.Errorf("of %d packages in the bills of materials of %s (%s) none is %s %s", len(listed), digest, files(m.documents), module.Path, module.Version)
		}
	}
	t.Logf("%s: %d modules are linked, %d packages are listed", digest, len(info.Deps), len(listed))
}

func files(documents map[string][]byte) string {
	var names []string
	for name := range documents {
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}
