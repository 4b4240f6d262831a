// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const scenario = `
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: '2', memory: 8Gi}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: small}
spec: {minMember: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: small-0, annotations: {scheduling.k8s.io/group-name: small}}
spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: nothing}
spec: {schedulerName: volcano, containers: [{name: c, image: i}]}
`

// withoutBackfill is a configuration under which pods that ask for nothing wait.
const withoutBackfill = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n"

// run calls the command and returns what it writes to standard output.
func run(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	cmd := newCommand()
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	if log.Len() > 0 {
		t.Errorf("standard error is not empty:\n%s", log.String())
	}
	return out.String(), err
}

// write writes a file of a directory.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASimulationIsPrinted(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "scenario.yaml", scenario)
	conf := write(t, t.TempDir(), "some.conf", withoutBackfill)
	configured := t.TempDir()
	write(t, configured, "scenario.yaml", scenario)
	write(t, configured, "volcano-scheduler.conf", withoutBackfill)
	const all, but = "2 pods bound", "1 pod bound"
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"of a file":                                 {args: []string{file}, want: all},
		"of a directory":                            {args: []string{dir}, want: all},
		"of standard input":                         {stdin: scenario, args: []string{"-"}, want: all},
		"by a configuration that is named":          {args: []string{file, "--config", conf}, want: but},
		"by that of the directory":                  {args: []string{configured}, want: but},
		"by one that is named before that":          {args: []string{configured, "--config", write(t, t.TempDir(), "c", "actions: allocate, backfill\n")}, want: all},
		"after some rounds":                         {args: []string{file, "--rounds", "1"}, want: "Stopped after 1 round: 2 pods bound"},
		"at a time":                                 {args: []string{file, "--at", "2026-01-31T12:00:00Z"}, want: all},
		"as the facts that are compared":            {args: []string{file, "-o", "conformance"}, want: `"boundPerJob"`},
		"with evicted pods, of which there is none": {args: []string{file, "--recreate"}, want: all},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, tc.stdin, append([]string{"simulate"}, tc.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out, tc.want) {
				t.Errorf("the output does not say %q:\n%s", tc.want, out)
			}
		})
	}
}

func TestMachinesReadJSON(t *testing.T) {
	out, err := run(t, scenario, "simulate", "-", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Settled bool
		Pods    []struct{ Name, Node string }
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatal(err)
	}
	if !result.Settled || len(result.Pods) != 2 || result.Pods[1].Name != "small-0" || result.Pods[1].Node != "n1" {
		t.Errorf("the result is %+v", result)
	}
}

func TestMistakesAreErrors(t *testing.T) {
	good := write(t, t.TempDir(), "good.yaml", scenario)
	bad := write(t, t.TempDir(), "bad.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: n1\n")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no file":                           {nil, "Name a file, a directory or - for standard input, or say --live"},
		"a file that is not there":          {[]string{"nobody.yaml"}, "nobody.yaml: no such file"},
		"a file that is no yaml":            {[]string{bad}, bad + ", document 1 (line 1)"},
		"a format that is not known":        {[]string{good, "-o", "xml"}, `--output is "xml": use one of table, json, conformance`},
		"a negative number of rounds":       {[]string{good, "--rounds", "-1"}, "--rounds is -1"},
		"a time that is none":               {[]string{good, "--at", "noon"}, `--at is "noon"`},
		"a configuration that is not there": {[]string{good, "--config", "nobody.conf"}, "nobody.conf: no such file"},
		"a configuration that cannot be":    {[]string{good, "--config", write(t, t.TempDir(), "c", "actions: dance\n")}, "dance"},
		"a flag that is not known":          {[]string{good, "--dance"}, "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, "", append([]string{"simulate"}, tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if out != "" {
				t.Errorf("standard output is not empty:\n%s", out)
			}
		})
	}
}

func TestHelpSaysHowKubectlCallsIt(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"simulate", "--help"}} {
		out, err := run(t, "", args...)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, "kubectl caldera") || strings.Contains(out, "kubectl-caldera") || strings.Contains(out, "--version") {
			t.Errorf("%v says\n%s", args, out)
		}
	}
}
