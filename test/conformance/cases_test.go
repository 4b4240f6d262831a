// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/report"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
	"github.com/caldera-scheduler/caldera/test/conformance"
)

// begin is when all cases begin: a noon long after everything in them was created.
var begin = time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)

// expectation is what expected.json says besides the facts.
type expectation struct {
	What    string
	Suspect string
	Chaotic bool
	Options struct {
		Cycles   int
		Recreate bool
	}
}

// exceptions is differences.yaml.
type exceptions struct {
	Differences map[string]struct {
		Reason string
		Expect conformance.Facts
	}
}

func readExceptions(t *testing.T) exceptions {
	t.Helper()
	var e exceptions
	if err := yaml.UnmarshalStrict(read(t, "differences.yaml"), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func cases(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/cases/*")
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) == 0 {
		t.Fatal("testdata/cases is empty")
	}
	return dirs
}

// expected reads the facts of a case and what goes with them.
func expected(t *testing.T, dir string) (conformance.Facts, expectation) {
	t.Helper()
	data := read(t, dir, "expected.json")
	facts, err := conformance.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	var e expectation
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	return facts, e
}

// decide runs a case and returns the facts. It fails where the scheduler does; a case that cannot be read is a fault of
// the test.
func decide(t *testing.T, dir string, e expectation) (conformance.Facts, error) {
	t.Helper()
	objects, err := scenario.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	completed, err := scenario.Complete(objects, begin)
	if err != nil {
		t.Fatal(err)
	}
	config, err := profile.Read("volcano-scheduler.conf", read(t, dir, "volcano-scheduler.conf"), profile.Only)
	if err != nil {
		return nil, err
	}
	// Errors only.
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
	result, err := simulate.Run(klog.NewContext(t.Context(), logger), completed, simulate.Options{
		Config: config, Rounds: e.Options.Cycles, Recreate: e.Options.Recreate, Now: begin,
	})
	if err != nil {
		return nil, err
	}
	var written strings.Builder
	if err := report.Write(&written, "conformance", result); err != nil {
		return nil, err
	}
	return conformance.Decode([]byte(written.String()))
}

// differing runs a case and says, a line each, in which facts it differs from what is wanted.
func differing(t *testing.T, dir string, chaotic bool, want conformance.Facts, e expectation) []string {
	t.Helper()
	got, err := decide(t, dir, e)
	if err != nil {
		return []string{err.Error()}
	}
	var lines []string
	for _, d := range conformance.Compare(conformance.Topic(filepath.Base(dir)), chaotic, want, got) {
		lines = append(lines, d.String())
	}
	return lines
}

func TestCalderaDecidesAsVolcanoDid(t *testing.T) {
	t.Parallel()
	exceptions := readExceptions(t)
	for _, dir := range cases(t) {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, e := expected(t, dir)
			exception, onPurpose := exceptions.Differences[name]
			if onPurpose {
				want = want.Merge(exception.Expect)
			}
			lines := differing(t, dir, e.Chaotic && !onPurpose, want, e)
			if len(lines) == 0 {
				return
			}
			message := fmt.Sprintf("%s\n%s", e.What, strings.Join(lines, "\n"))
			switch {
			case onPurpose:
				t.Errorf("it differs from Volcano on purpose (%s), but not as differences.yaml says. %s", exception.Reason, message)
			case e.Suspect != "":
				t.Errorf("what Volcano did is questionable (%s): agree with it, or argue in differences.yaml for what is right. %s", e.Suspect, message)
			default:
				t.Error(message)
			}
		})
	}
}

func TestDifferencesOnPurposeAreSuch(t *testing.T) {
	for name, d := range readExceptions(t).Differences {
		t.Run(name, func(t *testing.T) {
			want, e := expected(t, filepath.Join("testdata", "cases", name))
			if d.Reason == "" {
				t.Error("it has no reason")
			}
			if len(conformance.Compare(conformance.Topic(name), e.Chaotic, want, want.Merge(d.Expect))) == 0 {
				t.Error("what is expected instead is what Volcano did: remove the entry")
			}
		})
	}
}
