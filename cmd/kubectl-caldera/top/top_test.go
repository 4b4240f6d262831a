// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

func TestTheFullestNodeComesFirst(t *testing.T) {
	const gpu, nic = "nvidia.com/gpu", "example.com/nic"
	devices := []model.Devices{
		{Node: "n1", Resource: gpu, All: 8, Left: 7},
		{Node: "n1", Resource: nic, All: 100, Left: 99},
		{Node: "n2", Resource: gpu, All: 8, Left: 1},
		{Node: "n3", Resource: gpu, All: 4, Left: 4},
		{Node: "n4", Resource: gpu, All: 8, Shut: true},
		{Node: "n5", Resource: gpu, All: 8},
	}
	for name, want := range map[string]string{
		"": `NODE    RESOURCE          TAKEN                  FREE   OF    FIT 1   FIT 2   FIT 4   FIT 8
n1      example.com/nic   =.........             99     100   99      49      24      12
n4      nvidia.com/gpu    cordoned or not ready  0      8     0       0       0       0
n5      nvidia.com/gpu    ========               0      8     0       0       0       0
n2      nvidia.com/gpu    =======.               1      8     1       0       0       0
n1      nvidia.com/gpu    =.......               7      8     7       3       1       0
n3      nvidia.com/gpu    ....                   4      4     4       2       1       0
all 1   example.com/nic   -                      99     100   99      49      24      12
all 5   nvidia.com/gpu    -                      12     36    12      5       2       0
`,
		nic: `NODE    RESOURCE          TAKEN        FREE   OF    FIT 1   FIT 2   FIT 4   FIT 8
n1      example.com/nic   =.........   99     100   99      49      24      12
all 1   example.com/nic   -            99     100   99      49      24      12
`,
		"example.com/none": "No node has such devices.\n",
	} {
		var out strings.Builder
		if err := write(&out, devices, name, 10); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(cells(want), cells(out.String())); diff != "" {
			t.Errorf("of %q (-want,+got)\n%s\n%s", name, diff, out.String())
		}
	}
}

// cells are the words of each line.
func cells(text string) [][]string {
	var lines [][]string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

func TestTheScreenIsNotExceeded(t *testing.T) {
	const text = "first ├─ 1\nsecond\nthird\nfourth\n"
	for name, tc := range map[string]struct {
		width, height int
		want          string
	}{
		"no screen":        {0, 0, text},
		"a large one":      {80, 24, text},
		"a narrow one":     {7, 24, "first ├\nsecond\nthird\nfourth\n"},
		"a low one":        {80, 4, "first ├─ 1\nsecond\nand 2 lines more\n"},
		"just high enough": {80, 5, text},
		"one of one line":  {80, 1, "first ├─ 1\nand 3 lines more\n"},
	} {
		if diff := cmp.Diff(tc.want, clip(text, tc.width, tc.height)); diff != "" {
			t.Errorf("%s (-want,+got)\n%s", name, diff)
		}
	}
}
