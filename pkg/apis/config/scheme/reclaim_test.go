// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	scheduler "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
)

// loadReclaim reads the arguments of Reclaim in a configuration file, as kube-scheduler does.
func loadReclaim(pluginConfig string) (*config.ReclaimArgs, error) {
	file := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: volcano\n" +
		"  plugins: {postFilter: {enabled: [{name: Reclaim}], disabled: [{name: '*'}]}}\n" + pluginConfig
	object, _, err := scheduler.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range object.(*schedulerconfig.KubeSchedulerConfiguration).Profiles[0].PluginConfig {
		if c.Name == "Reclaim" {
			return c.Args.(*config.ReclaimArgs), nil
		}
	}
	return nil, nil
}

func TestWhatKubeSchedulerReadsForReclaim(t *testing.T) {
	duration := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	defaults := config.ReclaimArgs{EvictionConcurrency: 16, QueueCooldown: duration(time.Minute), VictimTimeout: duration(time.Minute), LedgerSize: 1000}
	rare := defaults
	rare.QueueCooldown, rare.LedgerSize = duration(0), 5
	for name, tc := range map[string]struct {
		pluginConfig string
		want         config.ReclaimArgs
	}{
		"a profile that gives no arguments": {"", defaults},
		"empty arguments":                   {"  pluginConfig: [{name: Reclaim, args: {}}]", defaults},
		"some arguments, zero among them":   {"  pluginConfig: [{name: Reclaim, args: {queueCooldown: 0s, ledgerSize: 5}}]", rare},
		"all arguments, and their kind": {
			"  pluginConfig: [{name: Reclaim, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: ReclaimArgs, evictionConcurrency: 4, " +
				"queueCooldown: 2m, victimTimeout: 90s, ledgerSize: 10}}]",
			config.ReclaimArgs{EvictionConcurrency: 4, QueueCooldown: duration(2 * time.Minute), VictimTimeout: duration(90 * time.Second), LedgerSize: 10},
		},
		"values that cannot be meant are kept, for the validation to refuse": {
			"  pluginConfig: [{name: Reclaim, args: {evictionConcurrency: 0, queueCooldown: 0s, victimTimeout: 0s, ledgerSize: 0}}]", config.ReclaimArgs{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := loadReclaim(tc.pluginConfig)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestWhatKubeSchedulerRefusesForReclaim(t *testing.T) {
	for name, tc := range map[string]struct {
		args string
		// want is a part of the error that tells what to change.
		want string
	}{
		"a mistyped field":          {"{queueCoolDown: 1m}", `unknown field "queueCoolDown"`},
		"a field given twice":       {"{ledgerSize: 8, ledgerSize: 9}", `"ledgerSize" already set`},
		"a word for a number":       {"{evictionConcurrency: many}", "evictionConcurrency of type int32"},
		"a number for a duration":   {"{victimTimeout: 90}", "victimTimeout of type string"},
		"arguments of another kind": {"{apiVersion: kubescheduler.config.k8s.io/v1, kind: GangArgs}", "Reclaim"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadReclaim("  pluginConfig: [{name: Reclaim, args: " + tc.args + "}]")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestReclaimArgsSurviveConversion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		internal := &config.ReclaimArgs{
			EvictionConcurrency: rapid.Int32().Draw(t, "concurrency"),
			QueueCooldown:       metav1.Duration{Duration: time.Duration(rapid.Int64().Draw(t, "cooldown"))},
			VictimTimeout:       metav1.Duration{Duration: time.Duration(rapid.Int64().Draw(t, "timeout"))},
			LedgerSize:          rapid.Int32().Draw(t, "size"),
		}
		var written v1.ReclaimArgs
		if err := scheduler.Scheme.Convert(internal, &written, nil); err != nil {
			t.Fatal(err)
		}
		var again config.ReclaimArgs
		if err := scheduler.Scheme.Convert(&written, &again, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(internal, &again); diff != "" {
			t.Fatalf("to v1 and back (-want,+got)\n%s", diff)
		}
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
		before, err := loadReclaim("  pluginConfig: [{name: Reclaim, args: {" + strings.Join(args, ", ") + "}}]")
		if err != nil {
			t.Fatal(err)
		}
		info, _ := runtime.SerializerInfoForMediaType(scheduler.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
		written, err := runtime.Encode(scheduler.Codecs.EncoderForVersion(info.Serializer, v1.SchemeGroupVersion), before)
		if err != nil {
			t.Fatal(err)
		}
		after, err := loadReclaim("  pluginConfig: [{name: Reclaim, args: " + string(written) + "}]")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("written as %s (-before,+after)\n%s", written, diff)
		}
	})
}
