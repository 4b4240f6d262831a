// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package suggest_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/suggest"
)

func TestUnsupported(t *testing.T) {
	path := field.NewPath("tiers").Index(1).Child("name")
	for name, tc := range map[string]struct {
		given string
		valid []string
		want  string
	}{
		"a character too many":                 {"drff", []string{"gang", "drf"}, `tiers[1].name: Unsupported value: "drff": did you mean "drf"?`},
		"a character left out":                 {"gng", []string{"gang", "drf"}, `tiers[1].name: Unsupported value: "gng": did you mean "gang"?`},
		"a wrong character":                    {"geng", []string{"gang", "drf"}, `tiers[1].name: Unsupported value: "geng": did you mean "gang"?`},
		"two characters swapped are one error": {"abdc", []string{"abxx", "abcd", "xxdc"}, `tiers[1].name: Unsupported value: "abdc": did you mean "abcd"?`},
		"another case":                         {"GANG", []string{"gang", "drf"}, `tiers[1].name: Unsupported value: "GANG": did you mean "gang"?`},
		"characters count, not bytes":          {"gäng", []string{"gang", "drf"}, `tiers[1].name: Unsupported value: "gäng": did you mean "gang"?`},
		"a tie goes by the alphabet":           {"ac", []string{"bc", "ab", "aa"}, `tiers[1].name: Unsupported value: "ac": did you mean "aa"?`},
		"half of it may be wrong":              {"pqab", []string{"cdab"}, `tiers[1].name: Unsupported value: "pqab": did you mean "cdab"?`},
		"more is another word":                 {"pqrb", []string{"cdab", "aaaa"}, `tiers[1].name: Unsupported value: "pqrb": valid are "aaaa", "cdab"`},
		"nothing at all":                       {"", []string{"gang"}, `tiers[1].name: Unsupported value: "": valid are "gang"`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, suggest.Unsupported(path, tc.given, tc.valid).Error()); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestUnknownKey(t *testing.T) {
	path := field.NewPath("tiers").Index(1).Child("plugin")
	for name, tc := range map[string]struct {
		given string
		valid []string
		want  string
	}{
		"near a valid key": {"plugin", []string{"plugins", "name"}, `tiers[1].plugin: Forbidden: unknown key; did you mean "plugins"?`},
		"near none":        {"plugin", []string{"name", "arguments"}, `tiers[1].plugin: Forbidden: unknown key; valid are "arguments", "name"`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, suggest.UnknownKey(path, tc.given, tc.valid).Error()); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestOneTypingErrorIsCorrected(t *testing.T) {
	// No two of them are less than four typing errors apart.
	valid := []string{"overcommit", "conformance", "proportion", "resourcequota", "network-topology-aware"}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom(valid).Draw(t, "word")
		at := rapid.IntRange(0, len(word)-1).Draw(t, "at")
		typed := []byte(word)
		switch rapid.SampledFrom([]string{"insert", "leave out", "replace"}).Draw(t, "error") {
		case "insert":
			typed = slices.Insert(typed, at, rapid.ByteRange('a', 'z').Draw(t, "character"))
		case "leave out":
			typed = slices.Delete(typed, at, at+1)
		case "replace":
			typed[at] = rapid.ByteRange('a', 'z').Draw(t, "character")
		}
		if got, ok := suggest.Nearest(string(typed), valid); !ok || got != word {
			t.Fatalf("the nearest to %q is %q, %t; want %q", typed, got, ok, word)
		}
	})
}
