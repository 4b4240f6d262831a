// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// command runs the command and returns what it prints.
func command(t *testing.T, args ...string) string {
	t.Helper()
	var out, progress bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&progress)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("growth %q: %v\n%s", args, err, progress.String())
	}
	return out.String()
}

// small is a cluster on which each operation comes out as on a large one.
func small(args ...string) []string {
	return append([]string{"--queues", "10", "--jobs", "100", "--repeat", "1", "--seconds", "0"}, args...)
}

// TestAllOperationsComeOutAsTheyHaveTo: each fails if its gang is not placed, or not refused, or its victims are not found.
func TestAllOperationsComeOutAsTheyHaveTo(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "growth.svg")
	var all []result
	if err := json.Unmarshal([]byte(command(t, small("--nodes", "20,40", "-o", "json", "--plot", picture)...)), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Pods != 200 || all[1].Pods != 400 {
		t.Fatalf("it measured %+v, want 200 pods on 20 nodes and 400 on 40", all)
	}
	for _, r := range all {
		if len(r.Operations) != len(operations()) {
			t.Errorf("%d operations are measured on %d nodes, want %d", len(r.Operations), r.Nodes, len(operations()))
		}
		for _, op := range r.Operations {
			if op.Fastest <= 0 || op.Fastest > op.Median || op.Times < 3 {
				t.Errorf("%s took %s, %s in the median, of %d times", op.Name, op.Fastest, op.Median, op.Times)
			}
		}
	}
	drawn, err := os.ReadFile(picture)
	if err != nil || !bytes.Contains(drawn, []byte("<svg")) {
		t.Errorf("the plot is %.40q: %v", drawn, err)
	}
}

// TestWhatIfComesOutAsItHasTo: gangs wait, one job less is not enough for any of them, and something is found that would be. No cluster is built besides.
func TestWhatIfComesOutAsItHasTo(t *testing.T) {
	table := command(t, small("--what-if", "--nodes", "20", "--queues", "1", "--jobs", "3")...)
	for _, op := range whatIf() {
		if !strings.Contains(table, op.name) {
			t.Errorf("it has no row %q:\n%s", op.name, table)
		}
	}
	if strings.Contains(table, "a bound pod, bytes") {
		t.Errorf("it tells what a cluster takes that was not built:\n%s", table)
	}
}

// TestTheTableHasARowForEachOperation, and one for each part of the memory, and is the same from a file of what was measured.
func TestTheTableHasARowForEachOperation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "growth.json")
	if err := os.WriteFile(file, []byte(command(t, small("--nodes", "20,40", "-o", "json")...)), 0o600); err != nil {
		t.Fatal(err)
	}
	table := command(t, "--from", file)
	for _, row := range []string{"a bound pod, bytes", "a node, bytes", "a queue, bytes"} {
		if !strings.Contains(table, row) {
			t.Errorf("it has no row %q:\n%s", row, table)
		}
	}
	for _, op := range operations() {
		if !strings.Contains(table, op.name) {
			t.Errorf("it has no row %q:\n%s", op.name, table)
		}
	}
}

// TestTurnsLeaveTheClusterAsItWas: the same is measured again and again.
func TestTurnsLeaveTheClusterAsItWas(t *testing.T) {
	w, err := newWorld(t.Context(), size{nodes: 20, queues: 10, jobs: 100}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	used := w.state.Totals().Used
	for range 3 {
		for _, op := range operations() {
			if _, err := op.once(t.Context(), w); err != nil {
				t.Fatalf("%s: %v", op.name, err)
			}
		}
	}
	if now := w.state.Totals().Used; now.String() != used.String() {
		t.Errorf("pods hold %s, want %s as before", now, used)
	}
	for _, p := range w.gangs {
		if task := w.state.Task(p.UID); task.Status != model.Pending {
			t.Errorf("pod %s is %v, want that it waits", p.Name, task.Status)
		}
	}
	if phase := w.dispatch.View().Phase(); phase != dispatch.Idle {
		t.Errorf("the turn is %s, want none", phase)
	}
}

// TestFlagsThatCannotBeAreNamed: nothing is measured, and the error says which flag to set.
func TestFlagsThatCannotBeAreNamed(t *testing.T) {
	for _, tc := range []struct{ flag, args string }{
		{"--nodes", "--nodes="}, {"--nodes", "--nodes=0"}, {"--queues", "--queues=0"}, {"--jobs", "--jobs=1"}, {"--output", "--output=yaml"},
	} {
		cmd := newCommand()
		cmd.SetArgs([]string{tc.args})
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.flag) {
			t.Errorf("growth %s: %v, want an error about %s", tc.args, err, tc.flag)
		}
	}
}

func TestExponent(t *testing.T) {
	all := []result{
		{Nodes: 1000, Operations: []measured{{Fastest: time.Millisecond}, {Fastest: time.Millisecond}}},
		{Nodes: 10_000, Operations: []measured{{Fastest: time.Millisecond}, {Fastest: 10 * time.Millisecond}}},
	}
	if flat, linear := exponent(all, 0), exponent(all, 1); flat != 0 || linear < 0.999 || linear > 1.001 {
		t.Errorf("what takes as long has the exponent %v, and what takes ten times as long on ten times the nodes %v", flat, linear)
	}
}
