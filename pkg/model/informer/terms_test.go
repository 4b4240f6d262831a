// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
)

// bothGroups are what is read of a PodGroup with annotations, in either API.
func bothGroups(annotations map[string]string) map[string]*model.Group {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "train", Annotations: annotations}
	return map[string]*model.Group{
		"Volcano":           informer.VolcanoGroup(&volcano.PodGroup{ObjectMeta: meta}),
		"scheduler-plugins": informer.CoschedulingGroup(&coscheduling.PodGroup{ObjectMeta: meta}),
	}
}

// TestHowLongAGangMayBeBroken: what cannot be used is as if it were not said, and is told with what to change.
func TestHowLongAGangMayBeBroken(t *testing.T) {
	const times = ": write a duration of at least 1s, such as 90s or 10m, or 0s, which is for ever; the scheduler's "
	for name, tc := range map[string]struct {
		half, broken, release string
		want                  model.Terms
		problem               string
	}{
		"nothing is said": {},
		"times":           {half: "90s", broken: "1h30m", want: model.Terms{HalfTimeout: model.Say(90 * time.Second), BrokenTimeout: model.Say(90 * time.Minute)}},
		"for ever":        {half: "0s", broken: "0", want: model.Terms{HalfTimeout: model.Say[time.Duration](0), BrokenTimeout: model.Say[time.Duration](0)}},
		"released":        {release: "true", want: model.Terms{ReleaseLost: model.Say(true)}},
		"not released":    {release: "false", want: model.Terms{ReleaseLost: model.Say(false)}},
		"no unit": {
			half: "90", problem: `annotation caldera.dev/half-timeout of PodGroup ns/train is "90"` + times + "halfTimeout holds until then",
		},
		"below zero": {
			half: "2m", broken: "-5m", want: model.Terms{HalfTimeout: model.Say(2 * time.Minute)},
			problem: `annotation caldera.dev/broken-timeout of PodGroup ns/train is "-5m"` + times + "brokenTimeout holds until then",
		},
		"too short": {
			broken: "999ms", problem: `annotation caldera.dev/broken-timeout of PodGroup ns/train is "999ms"` + times + "brokenTimeout holds until then",
		},
		"neither true nor false": {
			release: "yes", problem: `annotation caldera.dev/release-lost of PodGroup ns/train is "yes": write true or false; the scheduler's releaseLost holds until then`,
		},
		"released after ever": {
			broken: "0s", release: "true", want: model.Terms{BrokenTimeout: model.Say[time.Duration](0)},
			problem: `annotation caldera.dev/release-lost of PodGroup ns/train is "true": nothing is released while caldera.dev/broken-timeout is 0s, ` +
				"which is for ever: change or remove one of them; the scheduler's releaseLost holds until then",
		},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{}
			for key, value := range map[string]string{
				model.HalfTimeoutAnnotation: tc.half, model.BrokenTimeoutAnnotation: tc.broken, model.ReleaseLostAnnotation: tc.release,
			} {
				if value != "" {
					annotations[key] = value
				}
			}
			for api, group := range bothGroups(annotations) {
				if diff := cmp.Diff(tc.want, group.Terms); diff != "" {
					t.Errorf("%s (-want,+got)\n%s", api, diff)
				}
				if group.Problem != tc.problem {
					t.Errorf("%s: it is told %q, want %q", api, group.Problem, tc.problem)
				}
			}
		})
	}
}

// TestHowLongAJobIsPatient: in either API. What cannot be used is told.
func TestHowLongAJobIsPatient(t *testing.T) {
	for said, want := range map[string]time.Duration{"10m": 10 * time.Minute, "0s": 0, "8760h": 8760 * time.Hour, "10": -1, "-1s": -1, "8761h": -1, "": -1} {
		for api, group := range bothGroups(map[string]string{model.PreemptionDelayAnnotation: said}) {
			told := strings.Contains(group.Problem, fmt.Sprintf("annotation caldera.dev/preemption-delay is %q: write a duration from 0s to 8760h", said))
			if group.PreemptionDelay != max(0, want) || told != (want < 0) {
				t.Errorf("%s: of %q it is patient for %s, and is told %q", api, said, group.PreemptionDelay, group.Problem)
			}
		}
	}
}

// TestNoAnnotationIsIgnoredInSilence: whatever an annotation says is used, or it is told which one of which PodGroup cannot be.
func TestNoAnnotationIsIgnoredInSilence(t *testing.T) {
	value := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{"", " ", "0", "1s", "true", "True", "1", "5m ", "1e9h", "9999999h"}),
		rapid.Custom(func(t *rapid.T) string { return time.Duration(rapid.Int64().Draw(t, "duration")).String() }),
	)
	rapid.Check(t, func(t *rapid.T) {
		annotations := rapid.MapOf(
			rapid.SampledFrom([]string{model.HalfTimeoutAnnotation, model.BrokenTimeoutAnnotation, model.ReleaseLostAnnotation}), value,
		).Draw(t, "annotations")
		for api, group := range bothGroups(annotations) {
			used := map[string]bool{
				model.HalfTimeoutAnnotation: group.Terms.HalfTimeout.Given, model.BrokenTimeoutAnnotation: group.Terms.BrokenTimeout.Given,
				model.ReleaseLostAnnotation: group.Terms.ReleaseLost.Given,
			}
			for key, used := range used {
				said, given := annotations[key]
				told := strings.Contains(group.Problem, fmt.Sprintf("annotation %s of PodGroup ns/train is %.100q: ", key, said))
				if given != (used || told) || used && told {
					t.Fatalf("%s: %s is %q; it is used: %t, it is told: %t", api, key, said, used, told)
				}
			}
			for _, limit := range []model.Said[time.Duration]{group.Terms.HalfTimeout, group.Terms.BrokenTimeout} {
				if limit.Value < 0 || limit.Value > 0 && limit.Value < time.Second {
					t.Fatalf("%s: a gang may be broken for %s", api, limit.Value)
				}
			}
		}
	})
}
