// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suggest makes the error about a misspelt word name the word that was probably meant.
package suggest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Unsupported is the error that a value is not one of the valid words. It names the nearest of them, or all if none is
// near.
func Unsupported[T ~string](path *field.Path, given string, valid []T) *field.Error {
	return &field.Error{Type: field.ErrorTypeNotSupported, Field: path.String(), BadValue: given, Detail: instead(given, valid)}
}

// UnknownKey is the error that a map has a key that is not one of the valid ones. It names the nearest of them, or all
// if none is near. The path is that of the key.
func UnknownKey[T ~string](path *field.Path, given string, valid []T) *field.Error {
	return field.Forbidden(path, "unknown key; "+instead(given, valid))
}

// instead tells what to write instead of a word.
func instead[T ~string](given string, valid []T) string {
	if nearest, ok := Nearest(given, valid); ok {
		return fmt.Sprintf("did you mean %q?", nearest)
	}
	quoted := make([]string, 0, len(valid))
	for _, word := range slices.Sorted(slices.Values(valid)) {
		quoted = append(quoted, fmt.Sprintf("%q", word))
	}
	return "valid are " + strings.Join(quoted, ", ")
}

// Nearest is the valid word with the fewest typing errors from given, and whether one is near enough to be meant: at
// most every second character of given may be wrong. The first in the alphabet wins a tie. Upper and lower case are the
// same here.
func Nearest[T ~string](given string, valid []T) (T, bool) {
	var nearest T
	best := len([]rune(given))/2 + 1
	for _, word := range slices.Sorted(slices.Values(valid)) {
		if d := distance([]rune(strings.ToLower(given)), []rune(strings.ToLower(string(word)))); d < best {
			nearest, best = word, d
		}
	}
	return nearest, nearest != ""
}

// distance counts the typing errors between two words: a character inserted, left out or replaced, or two neighbours
// swapped (the optimal string alignment distance).
func distance(a, b []rune) int {
	// Rows of the table of distances between the first i characters of a and the first j of b: of i-2, i-1 and i.
	beforeLast, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		beforeLast, last, row = last, row, beforeLast
		row[0] = i + 1
		for j := range b {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, replaced)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], beforeLast[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
