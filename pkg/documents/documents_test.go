// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package documents_test

import (
	"slices"
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/documents"
)

func TestAFileIsTakenApart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file string
		want []string
	}{
		"empty":          {"", nil},
		"one":            {"a: 1\n", []string{"a: 1\n"}},
		"two":            {"a: 1\n---\nb: 2\n", []string{"a: 1\n", "b: 2\n"}},
		"a line before":  {"---\na: 1\n", []string{"---\na: 1\n"}},
		"only a comment": {"# nothing\n---\na: 1\n", []string{"# nothing\n", "a: 1\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for text, err := range documents.In([]byte(tc.file)) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(text))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhoHasEnoughReadsNoMore(t *testing.T) {
	t.Parallel()
	for text := range documents.In([]byte("a: 1\n---\nb: 2\n")) {
		if string(text) != "a: 1\n" {
			t.Fatalf("got %q", text)
		}
		break
	}
}
