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
	NotBuilt map[string]string
}

func readExceptions(t *testing.T) exceptions {
	t.Helper()
	data, err := os.ReadFile("differences.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var e exceptions
	if err := yaml.UnmarshalStrict(data, &e); err != nil {
		t.Fatal(err)
	}
	return e
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
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
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

// decide runs a case and returns the facts.
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
	data, err := os.ReadFile(filepath.Join(dir, "volcano-scheduler.conf"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := simulate.ReadConfig("volcano-scheduler.conf", data)
	if err != nil {
		return nil, err
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
	result, err := simulate.Run(klog.NewContext(t.Context(), logger), completed, simulate.Options{
		Config: config, Rounds: e.Options.Cycles, Recreate: e.Options.Recreate, Now: begin,
	})
	if err != nil {
		return nil, err
	}
	if data, err = json.Marshal(report.ConformanceOf(result)); err != nil {
		t.Fatal(err)
	}
	return conformance.Decode(data)
}

func TestCalderaDecidesAsVolcanoDid(t *testing.T) {
	exceptions := readExceptions(t)
	for _, dir := range cases(t) {
		name := filepath.Base(dir)
		topic := conformance.Topic(name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, e := expected(t, dir)
			exception, differs := exceptions.Differences[name]
			if differs {
				want = want.Merge(exception.Expect)
			}
			got, err := decide(t, dir, e)
			problems := []string{}
			if err != nil {
				problems = append(problems, err.Error())
			} else {
				for _, d := range conformance.Compare(topic, e.Chaotic && !differs, want, got) {
					problems = append(problems, d.String())
				}
			}
			if len(problems) == 0 {
				return
			}
			message := fmt.Sprintf("%s\n%s", e.What, strings.Join(problems, "\n"))
			switch reason, waits := exceptions.NotBuilt[topic]; {
			case waits && !differs:
				t.Skipf("%s: %d facts differ. %s", reason, len(problems), message)
			case differs:
				t.Errorf("differs from Volcano on purpose (%s), but not as differences.yaml says. %s", exception.Reason, message)
			case e.Suspect != "":
				t.Errorf("what Volcano did here is questionable (%s): agree with it, or argue in differences.yaml for what is right. %s", e.Suspect, message)
			default:
				t.Error(message)
			}
		})
	}
}

func TestEachNamedDifferenceIsOne(t *testing.T) {
	for name, d := range readExceptions(t).Differences {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", "cases", name)
			want, e := expected(t, dir)
			if d.Reason == "" {
				t.Error("it has no reason")
			}
			if same := conformance.Compare(conformance.Topic(name), e.Chaotic, want, want.Merge(d.Expect)); len(same) == 0 {
				t.Error("what is expected instead is what Volcano did: remove the entry")
			}
		})
	}
}
