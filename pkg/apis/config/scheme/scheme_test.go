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

// load reads a configuration file, as kube-scheduler does: with the codec of its own scheme
// (k8s.io/kubernetes/cmd/kube-scheduler/app/options/configfile.go, loadConfig). It returns the arguments that its one
// profile gives to a plugin.
func load(plugin, pluginConfig string) (runtime.Object, error) {
	file := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: volcano\n" +
		"  plugins: {multiPoint: {enabled: [{name: " + plugin + "}]}}\n" + pluginConfig
	object, _, err := scheduler.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range object.(*schedulerconfig.KubeSchedulerConfiguration).Profiles[0].PluginConfig {
		if c.Name == plugin {
			return c.Args, nil
		}
	}
	return nil, nil
}

// reads is what is read of some pluginConfig.
type reads struct {
	pluginConfig string
	want         runtime.Object
}

func testReads(t *testing.T, plugin string, cases map[string]reads) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := load(plugin, tc.pluginConfig)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

// refuses is a part of the error with which arguments are refused, which tells what to change.
type refuses struct{ args, want string }

func testRefuses(t *testing.T, plugin string, cases map[string]refuses) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := load(plugin, "  pluginConfig: [{name: "+plugin+", args: "+tc.args+"}]")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestWhatKubeSchedulerReads(t *testing.T) {
	testReads(t, "Gang", map[string]reads{
		"a profile that gives no arguments": {
			"",
			&config.GangArgs{BindConcurrency: 64, ReservationTimeout: metav1.Duration{Duration: 5 * time.Minute}, ScheduledEvents: config.PerPod},
		},
		"empty arguments": {
			"  pluginConfig: [{name: Gang, args: {}}]",
			&config.GangArgs{BindConcurrency: 64, ReservationTimeout: metav1.Duration{Duration: 5 * time.Minute}, ScheduledEvents: config.PerPod},
		},
		"one argument": {
			"  pluginConfig: [{name: Gang, args: {bindConcurrency: 8}}]",
			&config.GangArgs{BindConcurrency: 8, ReservationTimeout: metav1.Duration{Duration: 5 * time.Minute}, ScheduledEvents: config.PerPod},
		},
		"all arguments, and their kind": {
			"  pluginConfig: [{name: Gang, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: GangArgs, bindConcurrency: 8, reservationTimeout: 90s, scheduledEvents: PerGang}}]",
			&config.GangArgs{BindConcurrency: 8, ReservationTimeout: metav1.Duration{Duration: 90 * time.Second}, ScheduledEvents: config.PerGang},
		},
		"values that cannot be meant are kept, for the validation to refuse": {
			"  pluginConfig: [{name: Gang, args: {bindConcurrency: 0, reservationTimeout: 0s}}]",
			&config.GangArgs{ScheduledEvents: config.PerPod},
		},
	})
}

func TestWhatKubeSchedulerRefuses(t *testing.T) {
	testRefuses(t, "Gang", map[string]refuses{
		"a mistyped field":         {"{bindConcurency: 8}", `unknown field "bindConcurency"`},
		"a field in another case":  {"{BindConcurrency: 8}", `unknown field "BindConcurrency"`},
		"a field given twice":      {"{bindConcurrency: 8, bindConcurrency: 9}", `"bindConcurrency" already set`},
		"a word for a number":      {"{bindConcurrency: many}", "bindConcurrency of type int32"},
		"a number for a duration":  {"{reservationTimeout: 90}", "reservationTimeout of type string"},
		"no duration":              {"{reservationTimeout: soon}", `invalid duration "soon"`},
		"arguments of another one": {"{apiVersion: kubescheduler.config.k8s.io/v1, kind: NodeAffinityArgs}", "Gang"},
	})
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
		survives(t, internal, &v1.GangArgs{}, &config.GangArgs{})
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
		readsTheSame(t, "Gang", args)
	})
}

// survives converts arguments to v1 and back, by way of the empty objects given.
func survives(t *rapid.T, internal, written, again runtime.Object) {
	if err := scheduler.Scheme.Convert(internal, written, nil); err != nil {
		t.Fatal(err)
	}
	if err := scheduler.Scheme.Convert(written, again, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(internal, again); diff != "" {
		t.Fatalf("to v1 and back (-want,+got)\n%s", diff)
	}
}

// readsTheSame reads arguments, writes them, and reads them again.
func readsTheSame(t *rapid.T, plugin string, args []string) {
	before, err := load(plugin, "  pluginConfig: [{name: "+plugin+", args: {"+strings.Join(args, ", ")+"}}]")
	if err != nil {
		t.Fatal(err)
	}
	info, _ := runtime.SerializerInfoForMediaType(scheduler.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	written, err := runtime.Encode(scheduler.Codecs.EncoderForVersion(info.Serializer, v1.SchemeGroupVersion), before)
	if err != nil {
		t.Fatal(err)
	}
	after, err := load(plugin, "  pluginConfig: [{name: "+plugin+", args: "+string(written)+"}]")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Fatalf("written as %s (-before,+after)\n%s", written, diff)
	}
}
