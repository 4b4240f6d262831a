// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
)

func TestWhatKubeSchedulerReadsForReclaim(t *testing.T) {
	duration := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	defaults := config.ReclaimArgs{EvictionConcurrency: 16, QueueCooldown: duration(time.Minute), VictimTimeout: duration(time.Minute), LedgerSize: 1000}
	rare := defaults
	rare.QueueCooldown, rare.LedgerSize = duration(0), 5
	testReads(t, "Reclaim", map[string]reads{
		"a profile that gives no arguments": {"", &defaults},
		"empty arguments":                   {"  pluginConfig: [{name: Reclaim, args: {}}]", &defaults},
		"some arguments, zero among them":   {"  pluginConfig: [{name: Reclaim, args: {queueCooldown: 0s, ledgerSize: 5}}]", &rare},
		"all arguments, and their kind": {
			"  pluginConfig: [{name: Reclaim, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: ReclaimArgs, evictionConcurrency: 4, " +
				"queueCooldown: 2m, victimTimeout: 90s, ledgerSize: 10}}]",
			&config.ReclaimArgs{EvictionConcurrency: 4, QueueCooldown: duration(2 * time.Minute), VictimTimeout: duration(90 * time.Second), LedgerSize: 10},
		},
		"values that cannot be meant are kept, for the validation to refuse": {
			"  pluginConfig: [{name: Reclaim, args: {evictionConcurrency: 0, queueCooldown: 0s, victimTimeout: 0s, ledgerSize: 0}}]", &config.ReclaimArgs{},
		},
	})
}

func TestWhatKubeSchedulerRefusesForReclaim(t *testing.T) {
	testRefuses(t, "Reclaim", map[string]refuses{
		"a mistyped field":          {"{queueCoolDown: 1m}", `unknown field "queueCoolDown"`},
		"a field given twice":       {"{ledgerSize: 8, ledgerSize: 9}", `"ledgerSize" already set`},
		"a word for a number":       {"{evictionConcurrency: many}", "evictionConcurrency of type int32"},
		"a number for a duration":   {"{victimTimeout: 90}", "victimTimeout of type string"},
		"arguments of another kind": {"{apiVersion: kubescheduler.config.k8s.io/v1, kind: GangArgs}", "Reclaim"},
	})
}

func TestReclaimArgsSurviveConversion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		internal := &config.ReclaimArgs{
			EvictionConcurrency: rapid.Int32().Draw(t, "concurrency"),
			QueueCooldown:       metav1.Duration{Duration: time.Duration(rapid.Int64().Draw(t, "cooldown"))},
			VictimTimeout:       metav1.Duration{Duration: time.Duration(rapid.Int64().Draw(t, "timeout"))},
			LedgerSize:          rapid.Int32().Draw(t, "size"),
		}
		survives(t, internal, &v1.ReclaimArgs{}, &config.ReclaimArgs{})
	})
}

func TestReclaimArgsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var args []string
		if n := optional(t, "concurrency", rapid.Int32()); n != nil {
			args = append(args, fmt.Sprintf("evictionConcurrency: %d", *n))
		}
		if n := optional(t, "cooldown", rapid.Int64()); n != nil {
			args = append(args, fmt.Sprintf("queueCooldown: %s", time.Duration(*n)))
		}
		if n := optional(t, "timeout", rapid.Int64()); n != nil {
			args = append(args, fmt.Sprintf("victimTimeout: %s", time.Duration(*n)))
		}
		readsTheSame(t, "Reclaim", args)
	})
}
