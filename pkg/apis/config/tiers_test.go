// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"slices"
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

func TestSwitchThatIsNotGivenHasVolcanosDefault(t *testing.T) {
	off := []config.Switch{config.EnableHierarchy, config.EnableClusterOrder}
	for _, s := range config.Switches() {
		t.Run(string(s), func(t *testing.T) {
			if got, want := (&config.TierPlugin{}).Enabled(s), !slices.Contains(off, s); got != want {
				t.Errorf("it is %t, want %t", got, want)
			}
			for _, on := range []bool{true, false} {
				p := config.TierPlugin{Switches: map[config.Switch]bool{s: on}}
				if got := p.Enabled(s); got != on {
					t.Errorf("given %t it is %t", on, got)
				}
			}
		})
	}
}

func TestSwitchOf(t *testing.T) {
	for name, tc := range map[string]struct {
		key   string
		want  config.Switch
		known bool
	}{
		"the regular spelling":                 {"enableOverused", config.EnableOverused, true},
		"Volcano's spelling":                   {"enabledOverused", config.EnableOverused, true},
		"a spelling that Volcano has not":      {"enabledHierarchy", config.EnableHierarchy, true},
		"a mistyped key":                       {"enableOverusd", "", false},
		"both spellings at once":               {"enableenabledOverused", "", false},
		"another case":                         {"EnableOverused", "", false},
		"nothing":                              {"", "", false},
		"nothing after the spelling's prefix":  {"enabled", "", false},
		"a name of an entry that is no switch": {"name", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := config.SwitchOf(tc.key)
			if known != tc.known || known && got != tc.want {
				t.Errorf("got %q, %t; want %q, %t", got, known, tc.want, tc.known)
			}
		})
	}
}
