// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
)

func TestReclaimArgs(t *testing.T) {
	path := field.NewPath("profiles").Index(0).Child("pluginConfig").Key("Reclaim")
	args := func(concurrency int32, cooldown, timeout time.Duration, size int32) config.ReclaimArgs {
		return config.ReclaimArgs{
			EvictionConcurrency: concurrency, QueueCooldown: metav1.Duration{Duration: cooldown},
			VictimTimeout: metav1.Duration{Duration: timeout}, LedgerSize: size,
		}
	}
	const at = "profiles[0].pluginConfig[Reclaim]."
	for name, tc := range map[string]struct {
		args config.ReclaimArgs
		want []string
	}{
		"the defaults":        {args(16, time.Minute, time.Minute, 1000), nil},
		"the smallest values": {args(1, 0, 1, 1), nil},
		"the largest values":  {args(1000, 24*time.Hour, 24*time.Hour, 100000), nil},
		"too many at a time": {
			args(1001, 0, time.Minute, 1), []string{at + "evictionConcurrency: Invalid value: 1001: must be at least 1 and at most 1000"},
		},
		"a ledger without an end": {
			args(1, 0, time.Minute, 100001), []string{at + "ledgerSize: Invalid value: 100001: must be at least 1 and at most 100000"},
		},
		"everything is wrong, and everything is told": {
			args(0, -time.Second, 0, 0),
			[]string{
				at + "evictionConcurrency: Invalid value: 0: must be at least 1 and at most 1000",
				at + "ledgerSize: Invalid value: 0: must be at least 1 and at most 100000",
				at + `queueCooldown: Invalid value: "-1s": must be at least 0s`,
				at + `victimTimeout: Invalid value: "0s": must be more than 0s`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, messages(validation.ValidateReclaimArgs(path, &tc.args))); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
