// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"

	"github.com/caldera-scheduler/caldera/cmd/localcluster/pki"
)

func TestEnsureMakesAServingCertificateTheKubeconfigTrusts(t *testing.T) {
	t.Parallel()
	now := time.Now()
	files, err := pki.Ensure(filepath.Join(t.TempDir(), "pki"), now)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := files.WriteKubeconfig(path, "https://127.0.0.1:6443"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:6443" || len(config.BearerToken) < 26 {
		t.Errorf("kubeconfig is for %q with a token of %d characters", config.Host, len(config.BearerToken))
	}
	roots, err := certutil.NewPoolFromBytes(config.CAData)
	if err != nil {
		t.Fatal(err)
	}
	serving, err := certutil.CertsFromFile(files.ServingCert)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if _, err := serving[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now.AddDate(5, 0, 0)}); err != nil {
			t.Errorf("verifying for %s in five years: %v", host, err)
		}
	}
}

func TestEnsureKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	before := ensured(t, dir)
	after := ensured(t, dir)
	for path, content := range before {
		if after[path] != content {
			t.Errorf("%s has changed", path)
		}
	}
}

// ensured returns the content of every file, and checks that only the owner can read them.
func ensured(t *testing.T, dir string) map[string]string {
	t.Helper()
	if _, err := pki.Ensure(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string]string{}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode of %s is %v, want 0600", entry.Name(), info.Mode().Perm())
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		contents[entry.Name()] = string(content)
	}
	return contents
}
