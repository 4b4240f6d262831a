// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"regexp"
	"strconv"
)

// number is a number that stands on its own, and not in a name like node-17 or v1.2.
var number = regexp.MustCompile(`(^|[\s/(:=])(\d+(?:\.\d+)?)`)

// differ reports whether what two messages say differs by more than people would pass over: in words or units, or in a number by half of what it
// was, or more.
func differ(before, after string) bool {
	if before == after {
		return false
	}
	words := func(s string) string { return number.ReplaceAllString(s, "${1}0") }
	if words(before) != words(after) {
		return true
	}
	was, is := number.FindAllStringSubmatch(before, -1), number.FindAllStringSubmatch(after, -1)
	for i := range was {
		x, errX := strconv.ParseFloat(was[i][2], 64)
		y, errY := strconv.ParseFloat(is[i][2], 64)
		if errX != nil || errY != nil || max(x, y)-min(x, y) > 0 && max(x, y)-min(x, y) >= x/2 {
			return true
		}
	}
	return false
}
