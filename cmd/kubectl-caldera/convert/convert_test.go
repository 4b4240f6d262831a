// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/convert"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

const file = `
actions: "enqueue, allocate, shuffle"
tiers:
- plugins:
  - name: gang
    enabelJobOrder: true
- plugins:
  - name: predicates
    arguments: {predicate.CacheEnable: true}
  - name: binpack
    arguments: {binpack.weight: 10, binpack.gpu: 3}
  - name: network-topology-aware
    enabledHyperNodeOrder: false
    arguments: {weight: 5}
configurations:
- name: allocate
  arguments: {predicateErrorCacheEnable: false}
volumes: []
`

// execute runs a command and returns what it wrote.
func execute(t *testing.T, cmd *cobra.Command, in string, args ...string) (out, errOut string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.SetIn(strings.NewReader(in))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestTheReportNamesEverything(t *testing.T) {
	out, _, err := execute(t, convert.New(), file, "-", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var report []profile.Line
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	got := map[string]profile.Fate{}
	for _, l := range report {
		got[l.Field] = l.Fate
		if l.Note == "" && l.Fate == profile.Changed {
			t.Errorf("%s is changed, and nobody says how", l.Field)
		}
	}
	want := map[string]profile.Fate{
		"actions[0]":               profile.Changed,
		"actions[1]":               profile.Changed,
		"actions[2]":               profile.Changed,
		"tiers[0].plugins[0].name": profile.Changed,
		"tiers[1].plugins[0].name": profile.Changed,
		"tiers[1].plugins[0].arguments[predicate.CacheEnable]":   profile.Changed,
		"tiers[1].plugins[1].name":                               profile.Changed,
		"tiers[1].plugins[1].arguments[binpack.weight]":          profile.Same,
		"tiers[1].plugins[2].name":                               profile.Changed,
		"tiers[1].plugins[2].enableHyperNodeOrder":               profile.Unsupported,
		"tiers[1].plugins[2].arguments[weight]":                  profile.Same,
		"configurations[0].arguments[predicateErrorCacheEnable]": profile.Changed,
		"tiers[0].plugins[0].enabelJobOrder":                     profile.Ignored,
		"tiers[1].plugins[1].arguments[binpack.gpu]":             profile.Ignored,
		"volumes": profile.Ignored,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}

// TestWhatIsConvertedIsTheSame: the configuration that is written means what the file does for --volcano-conf.
func TestWhatIsConvertedIsTheSame(t *testing.T) {
	clean := strings.NewReplacer("    enabelJobOrder: true\n", "", ", binpack.gpu: 3", "", "volumes: []\n", "").Replace(file)
	for _, base := range []struct {
		flags []string
		into  profile.Shipped
	}{{nil, profile.Second}, {[]string{"--only-scheduler"}, profile.Only}} {
		out, report, err := execute(t, convert.New(), file, append([]string{"-"}, base.flags...)...)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(report, "ignored by Volcano   volumes") {
			t.Errorf("the report is\n%s", report)
		}
		got, err := profile.Decode("converted", []byte(out))
		if err != nil {
			t.Fatal(err)
		}
		want, err := profile.Read("file", []byte(clean), base.into)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-file,+converted)\n%s", base.into, diff)
		}
	}
}

func TestWhatCannotBeConverted(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		args []string
		want string
	}{
		"a value that means nothing": {
			"actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    arguments: {binpack.weight: -1, binpack.gpu: 1}\n",
			[]string{"-"},
			"tiers[0].plugins[0].arguments[binpack.weight]: Invalid value: -1",
		},
		"a configuration of kube-scheduler": {"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n", []string{"-"}, "already"},
		"no YAML":                           {"{", []string{"-"}, "- cannot be converted: reading the configuration"},
		"no file":                           {"", []string{filepath.Join(t.TempDir(), "none")}, "no such file"},
		"another form":                      {"", []string{"-", "-o", "xml"}, `--output is "xml": use one of yaml, report, json`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := execute(t, convert.New(), tc.in, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	shipped, err := os.ReadFile("../../../manifests/config/volcano-only.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		in, want string
		// wrong: want is a part of the error.
		wrong bool
	}{
		"Volcano's file":           {in: "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: binpack}]}]\n", want: "- is a valid volcano-scheduler.conf\n"},
		"an empty file":            {in: "", want: "- is a valid volcano-scheduler.conf\n"},
		"kube-scheduler's":         {in: string(shipped), want: "- is a valid KubeSchedulerConfiguration\n"},
		"a key that means nothing": {in: "action: allocate\n", want: `action: Forbidden: unknown key; did you mean "actions"?`, wrong: true},
		"two errors": {
			in: "actions: alocate\ntiers: [{plugins: [{name: binpak}]}]\n", wrong: true,
			want: "  tiers[0].plugins[0].name: Unsupported value: \"binpak\": did you mean \"binpack\"?",
		},
		"tabs": {in: "actions: allocate\ntiers:\n\t- plugins: []\n", want: "found character that cannot start any token", wrong: true},
		"plugins that do not go together": {
			in: strings.Replace(string(shipped), "      disabled:\n      - name: DefaultPreemption\n", "", 1), wrong: true,
			want: "plugin DefaultPreemption evicts for single pods of a gang",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := execute(t, convert.NewValidate(), tc.in, "-")
			switch {
			case tc.wrong && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want %q", err, tc.want)
			case !tc.wrong && (err != nil || out != tc.want):
				t.Errorf("it says %q (%v), want %q", out, err, tc.want)
			}
		})
	}
}
