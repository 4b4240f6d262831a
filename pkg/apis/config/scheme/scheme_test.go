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
	_ "github.com/caldera-scheduler/caldera/pkg/apis/config/scheme"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
)

// load reads a configuration file with one profile, as kube-scheduler does: with the codec of its own scheme
// (k8s.io/kubernetes/cmd/kube-scheduler/app/options/configfile.go, loadConfig).
func load(profile string) (*schedulerconfig.KubeSchedulerProfile, error) {
	file := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: volcano\n" +
		"  plugins: {multiPoint: {enabled: [{name: Gang}]}}\n" + profile
	object, _, err := scheduler.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		return nil, err
	}
	return &object.(*schedulerconfig.KubeSchedulerConfiguration).Profiles[0], nil
}

// gangArgs are the arguments a profile gives to the plugin.
func gangArgs(profile *schedulerconfig.KubeSchedulerProfile) runtime.Object {
	for _, c := range profile.PluginConfig {
		if c.Name == "Gang" {
			return c.Args
		}
	}
	return nil
}

func TestWhatKubeSchedulerReads(t *testing.T) {
	for name, tc := range map[string]struct {
		profile string
		want    *config.GangArgs
	}{
		"a profile that gives no arguments": {
			"",
			&config.GangArgs{BindConcurrency: 64, ReservationTimeout: metav1.Duration{Duration: 5 * time.Minute}},
		},
		"empty arguments": {
			"  pluginConfig: [{name: Gang, args: {}}]",
			&config.GangArgs{BindConcurrency: 64, ReservationTimeout: metav1.Duration{Duration: 5 * time.Minute}},
		},
		"one argument": {
			"  pluginConfig: [{name: Gang, args: {bindConcurrency: 8}}]",
			&config.GangArgs{BindConcurrency: 8, ReservationTimeout: metav1.Duration{Duration: 5 * time.Minute}},
		},
		"all arguments, and their kind": {
			"  pluginConfig: [{name: Gang, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: GangArgs, bindConcurrency: 8, reservationTimeout: 90s}}]",
			&config.GangArgs{BindConcurrency: 8, ReservationTimeout: metav1.Duration{Duration: 90 * time.Second}},
		},
		"values that cannot be meant are kept, for the validation to refuse": {
			"  pluginConfig: [{name: Gang, args: {bindConcurrency: 0, reservationTimeout: 0s}}]",
			&config.GangArgs{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			profile, err := load(tc.profile)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(runtime.Object(tc.want), gangArgs(profile)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestWhatKubeSchedulerRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		args string
		// want is a part of the error that tells what to change.
		want string
	}{
		"a mistyped field":         {"{bindConcurency: 8}", `unknown field "bindConcurency"`},
		"a field in another case":  {"{BindConcurrency: 8}", `unknown field "BindConcurrency"`},
		"a field given twice":      {"{bindConcurrency: 8, bindConcurrency: 9}", `"bindConcurrency" already set`},
		"a word for a number":      {"{bindConcurrency: many}", "bindConcurrency of type int32"},
		"a number for a duration":  {"{reservationTimeout: 90}", "reservationTimeout of type string"},
		"no duration":              {"{reservationTimeout: soon}", `invalid duration "soon"`},
		"arguments of another one": {"{apiVersion: kubescheduler.config.k8s.io/v1, kind: NodeAffinityArgs}", "Gang"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load("  pluginConfig: [{name: Gang, args: " + tc.args + "}]")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one that says %q", err, tc.want)
			}
		})
	}
}

// A number may be left out and any number may be written.
func optional[T any](t *rapid.T, name string, of *rapid.Generator[T]) *T {
	if rapid.Bool().Draw(t, "has "+name) {
		return new(of.Draw(t, name))
	}
	return nil
}

func TestConversionLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		internal := &config.GangArgs{
			BindConcurrency:    rapid.Int32().Draw(t, "concurrency"),
			ReservationTimeout: metav1.Duration{Duration: time.Duration(rapid.Int64().Draw(t, "timeout"))},
		}
		var written v1.GangArgs
		if err := scheduler.Scheme.Convert(internal, &written, nil); err != nil {
			t.Fatal(err)
		}
		var again config.GangArgs
		if err := scheduler.Scheme.Convert(&written, &again, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(internal, &again); diff != "" {
			t.Fatalf("to v1 and back (-want,+got)\n%s", diff)
		}
	})
}

// kube-scheduler logs the configuration it runs with, and users start from what it logged.
func TestWhatIsWrittenReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var args []string
		if n := optional(t, "concurrency", rapid.Int32()); n != nil {
			args = append(args, fmt.Sprintf("bindConcurrency: %d", *n))
		}
		if n := optional(t, "timeout", rapid.Int64()); n != nil {
			args = append(args, fmt.Sprintf("reservationTimeout: %s", time.Duration(*n)))
		}
		before, err := load("  pluginConfig: [{name: Gang, args: {" + strings.Join(args, ", ") + "}}]")
		if err != nil {
			t.Fatal(err)
		}
		info, _ := runtime.SerializerInfoForMediaType(scheduler.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
		written, err := runtime.Encode(scheduler.Codecs.EncoderForVersion(info.Serializer, v1.SchemeGroupVersion), gangArgs(before))
		if err != nil {
			t.Fatal(err)
		}
		after, err := load("  pluginConfig: [{name: Gang, args: " + string(written) + "}]")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(gangArgs(before), gangArgs(after)); diff != "" {
			t.Fatalf("written as %s (-before,+after)\n%s", written, diff)
		}
	})
}
