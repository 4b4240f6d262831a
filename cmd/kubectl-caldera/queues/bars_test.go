// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestBarsHaveOneScale: with 16 characters for 16 GPUs each is one.
func TestBarsHaveOneScale(t *testing.T) {
	const want = `QUEUE         NVIDIA.COM/GPU      HELD   DUE   LIMIT   WAITING   OLDEST
root          -                   0      -     -       0         -
├─ lab        ==========..        10     12    -       3         60m
│  ├─ day     =                   1      -     -       1         -
│  └─ night   ====+++++       |   9      4     16      0         -
└─ prod       -                   0      -     0       0         -
ring-a        -                   0      -     -       0         -
ring-b        -                   0      -     -       0         -
= held   + held beyond its due   . due and not held   | limit
`
	var out strings.Builder
	if err := writeBars(&out, tables(), "", 16); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
	for resource, bar := range map[corev1.ResourceName]string{"cpu": "========........", "memory": "-"} {
		out.Reset()
		if err := writeBars(&out, tables(), resource, 16); err != nil {
			t.Fatal(err)
		}
		if lab := strings.Split(out.String(), "\n")[2]; strings.Fields(lab)[2] != bar {
			t.Errorf("of %s the queue lab is %q, want the bar %q", resource, lab, bar)
		}
	}
}
