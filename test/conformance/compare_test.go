// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/test/conformance"
)

func facts(t *testing.T, text string) conformance.Facts {
	t.Helper()
	f, err := conformance.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFactsAreCompared(t *testing.T) {
	for name, tc := range map[string]struct {
		topic   string
		chaotic bool
		want    string
		got     string
		differ  []string
	}{
		"facts that volcano does not state do not count": {
			want: `{"final": {"started": {"default/a": true}}}`,
			got:  `{"final": {"started": {"default/a": true, "default/b": false}, "boundPerJob": {"default/a": 1}}}`,
		},
		"a fact of another value differs": {
			want:   `{"final": {"started": {"default/a": true}, "boundPerJob": {"default/a": 3}}}`,
			got:    `{"final": {"started": {"default/a": false}, "boundPerJob": {"default/a": 2}}}`,
			differ: []string{"final.boundPerJob[default/a]: want 3, got 2", "final.started[default/a]: want true, got false"},
		},
		"a fact that is not there differs": {
			want:   `{"final": {"phase": {"default/a": "Running"}}, "initial": {"queues": {"q": {"share": 0.5}}}}`,
			got:    `{"final": {}, "initial": {"queues": {}}}`,
			differ: []string{`final.phase: want {"default/a":"Running"}, got nothing`, `initial.queues[q]: want {"share":0.5}, got nothing`},
		},
		"numbers within a thousandth are equal": {
			want: `{"initial": {"jobShares": {"default/a": 0.333333}}}`,
			got:  `{"initial": {"jobShares": {"default/a": 0.3333}}}`,
		},
		"numbers further apart are not": {
			want:   `{"initial": {"jobShares": {"default/a": 0.5}}}`,
			got:    `{"initial": {"jobShares": {"default/a": 0.51}}}`,
			differ: []string{"initial.jobShares[default/a]: want 0.5, got 0.51"},
		},
		"amounts of resources that are left out are zero": {
			want: `{"initial": {"queues": {"q": {"allocated": {"milliCPU": 1000, "memoryBytes": 0}}}}}`,
			got:  `{"initial": {"queues": {"q": {"allocated": {"milliCPU": 1000, "pods": 0}}}}}`,
		},
		"amounts that volcano leaves out differ from some": {
			want:   `{"initial": {"queues": {"q": {"deserved": {"milliCPU": 1000}}}}}`,
			got:    `{"initial": {"queues": {"q": {"deserved": {"milliCPU": 1000, "nvidia.com/gpu": 2}}}}}`,
			differ: []string{"initial.queues[q][deserved][nvidia.com/gpu]: want 0, got 2"},
		},
		"no limit differs from a limit": {
			want:   `{"initial": {"queues": {"q": {"realCapability": {"milliCPU": "unlimited"}}}}}`,
			got:    `{"initial": {"queues": {"q": {"realCapability": {"milliCPU": 4000}}}}}`,
			differ: []string{`initial.queues[q][realCapability][milliCPU]: want "unlimited", got 4000`},
		},
		"a number that volcano does not have is no fact": {
			want: `{"initial": {"queues": {"root": {"share": null}}}}`,
			got:  `{"initial": {"queues": {"root": {"share": 0.5}}}}`,
		},
		"of a chaotic case only the start counts": {
			chaotic: true,
			want:    `{"initial": {"jobShares": {"default/a": 1}}, "final": {"started": {"default/a": true}}}`,
			got:     `{"initial": {"jobShares": {"default/a": 0}}, "final": {"started": {"default/a": false}}}`,
			differ:  []string{"initial.jobShares[default/a]: want 1, got 0"},
		},
		"nodes count in topics about placement, phases do not": {
			topic:  "binpack",
			want:   `{"final": {"nodeOf": {"default/a-0": "n1"}, "podsPerNodeByJob": {"default/a": [2, 1]}, "phase": {"default/a": "Running"}}}`,
			got:    `{"final": {"nodeOf": {"default/a-0": "n2"}, "podsPerNodeByJob": {"default/a": [3]}, "phase": {"default/a": "Unknown"}}}`,
			differ: []string{`final.nodeOf[default/a-0]: want "n1", got "n2"`, "final.podsPerNodeByJob[default/a]: want [2,1], got [3]"},
		},
		"phases count elsewhere, nodes do not": {
			topic:  "gang",
			want:   `{"final": {"nodeOf": {"default/a-0": "n1"}, "phase": {"default/a": "Running"}}}`,
			got:    `{"final": {"nodeOf": {"default/a-0": "n2"}, "phase": {"default/a": "Unknown"}}}`,
			differ: []string{`final.phase[default/a]: want "Running", got "Unknown"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range conformance.Compare(tc.topic, tc.chaotic, facts(t, tc.want), facts(t, tc.got)) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(tc.differ, got); diff != "" {
				t.Errorf("differences (-want,+got)\n%s", diff)
			}
		})
	}
}

func TestOneFactCanBeReplaced(t *testing.T) {
	f := facts(t, `{"final": {"started": {"default/a": true, "default/b": true}, "phase": {"default/a": "Running"}}}`)
	got := f.Merge(facts(t, `{"final": {"started": {"default/a": false}}}`))
	want := facts(t, `{"final": {"started": {"default/a": false, "default/b": true}, "phase": {"default/a": "Running"}}}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}
