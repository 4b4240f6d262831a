// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// refused are the files of earlier versions that this one does not read, by their names, and what it says of each. docs/upgrade.md has to say it, too.
var refused = map[string]string{}

// TestConfigurationsOfTheEarlierVersionAreRead starts a scheduler, on objects in memory, by each configuration that the earlier version was shipped with.
func TestConfigurationsOfTheEarlierVersionAreRead(t *testing.T) {
	old := from(t)
	page, err := os.ReadFile("../../docs/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, pattern := range []string{"config/*.yaml", "volcano/*.conf"} {
		names, err := fs.Glob(old.manifests, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			read++
			t.Run(name, func(t *testing.T) {
				data, err := fs.ReadFile(old.manifests, name)
				if err != nil {
					t.Fatal(err)
				}
				err = starts(t.Context(), name, data)
				switch want := refused[name]; {
				case want == "" && err != nil:
					t.Error(err)
				case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
					t.Errorf("the error is %v, want one that says %q", err, want)
				case want != "" && !bytes.Contains(page, []byte(want)):
					t.Errorf("docs/upgrade.md does not say %q", want)
				}
			})
		}
	}
	if read < 3 {
		t.Errorf("the earlier version has %d configurations: they are elsewhere", read)
	}
}

// TestWhatIsNotKnownIsRefusedByName: whoever has a setting that is no more learns which.
func TestWhatIsNotKnownIsRefusedByName(t *testing.T) {
	old := from(t)
	for name, change := range map[string][3]string{
		"config/volcano-only.yaml": {"profiles:", "gangs: many\nprofiles:", `unknown field "gangs"`},
		volcanoConf:                {"name: nodeorder", "name: nodes", `tiers[1].plugins[4].name: Unsupported value: "nodes"`},
	} {
		data, err := fs.ReadFile(old.manifests, name)
		if err != nil {
			t.Fatal(err)
		}
		data = bytes.Replace(data, []byte(change[0]), []byte(change[1]), 1)
		if err := starts(t.Context(), name, data); err == nil || !strings.Contains(err.Error(), change[2]) {
			t.Errorf("%s: the error is %v, want one that says %q", name, err, change[2])
		}
	}
}

// starts reads a configuration as the scheduler does and starts one by it.
func starts(ctx context.Context, name string, data []byte) error {
	c, err := profile.Read(name, data, profile.Second)
	if err != nil {
		return err
	}
	if _, err := simulate.Run(ctx, nil, simulate.Options{Config: c, Rounds: 1, Now: time.Now()}); err != nil {
		return fmt.Errorf("a scheduler does not start with %s: %w", name, err)
	}
	return nil
}
