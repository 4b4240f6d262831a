// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// TestTDMPutsJobsFirstThatMayNotBeEvicted: that is so whatever was created first, unless its order is switched off.
func TestTDMPutsJobsFirstThatMayNotBeEvicted(t *testing.T) {
	job := func(name, preemptable string) *model.Job {
		g := &volcano.PodGroup{}
		if preemptable != "" {
			g.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{model.PreemptableKey: preemptable}}
		}
		return &model.Job{Key: model.JobKey{Name: name}, UID: "u", Group: &model.Group{MinMember: 1, Object: g}}
	}
	off := false
	for name, tc := range map[string]struct {
		a, b     string
		switched *bool
		want     int
	}{
		"the other may be evicted":          {a: "false", b: "true", want: -1},
		"it may be evicted":                 {a: "true", b: "false", want: 1},
		"who says nothing stays":            {a: "", b: "true", want: -1},
		"both may":                          {a: "true", b: "true"},
		"neither may":                       {a: "", b: "false"},
		"its order of jobs is switched off": {a: "false", b: "true", switched: &off},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := config.TierPlugin{Name: config.PluginTDM}
			if tc.switched != nil {
				plugin.Switches = map[config.Switch]bool{config.EnableJobOrder: *tc.switched}
			}
			set, err := policy.Compile(&config.BatchQueueArgs{Tiers: []config.Tier{{Plugins: []config.TierPlugin{plugin}}}})
			if err != nil {
				t.Fatal(err)
			}
			// They have one UID and were created at once, so that nothing else decides.
			if got := set.CompareJobs(set.Rank(job("a", tc.a)), set.Rank(job("b", tc.b))); got != tc.want {
				t.Errorf("the order is %d, want %d", got, tc.want)
			}
			// Where this policy has no opinion the UIDs, which are the same, decide.
			d := set.DecideJobs(set.Rank(job("a", tc.a)), set.Rank(job("b", tc.b)))
			says := map[int]string{-1: "may not be evicted, may be evicted", 0: "UID u, UID u", 1: "may be evicted, may not be evicted"}[tc.want]
			if d.Order != tc.want || d.A+", "+d.B != says || (d.Plugin == config.PluginTDM) != (tc.want != 0) {
				t.Errorf("what decides is %+v", d)
			}
		})
	}
}
