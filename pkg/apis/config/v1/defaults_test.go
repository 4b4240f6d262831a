// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
)

func TestDefaultsFillOnlyWhatIsAbsent(t *testing.T) {
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	for name, tc := range map[string]struct {
		given, want v1.GangArgs
	}{
		"everything is absent": {
			v1.GangArgs{},
			v1.GangArgs{BindConcurrency: new(int32(64)), ReservationTimeout: duration(5 * time.Minute), ScheduledEvents: "PerPod"},
		},
		"a concurrency is given": {
			v1.GangArgs{BindConcurrency: new(int32(1))},
			v1.GangArgs{BindConcurrency: new(int32(1)), ReservationTimeout: duration(5 * time.Minute), ScheduledEvents: "PerPod"},
		},
		"a timeout is given": {
			v1.GangArgs{ReservationTimeout: duration(time.Second)},
			v1.GangArgs{BindConcurrency: new(int32(64)), ReservationTimeout: duration(time.Second), ScheduledEvents: "PerPod"},
		},
		"zero is a value": {
			v1.GangArgs{BindConcurrency: new(int32(0)), ReservationTimeout: duration(0), ScheduledEvents: "Never"},
			v1.GangArgs{BindConcurrency: new(int32(0)), ReservationTimeout: duration(0), ScheduledEvents: "Never"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			got := tc.given.DeepCopy()
			scheme.Default(got)
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestDefaultsAreNotShared(t *testing.T) {
	var a, b v1.GangArgs
	v1.SetDefaults_GangArgs(&a)
	v1.SetDefaults_GangArgs(&b)
	*a.BindConcurrency, a.ReservationTimeout.Duration = 1, 1
	if *b.BindConcurrency == 1 || b.ReservationTimeout.Duration == 1 {
		t.Error("changing the defaults of one profile changes those of another")
	}
}

func TestDefaultsOfReclaimArgs(t *testing.T) {
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	for name, tc := range map[string]struct {
		given, want v1.ReclaimArgs
	}{
		"everything is absent": {
			v1.ReclaimArgs{},
			v1.ReclaimArgs{EvictionConcurrency: new(int32(16)), QueueCooldown: duration(time.Minute), VictimTimeout: duration(time.Minute), LedgerSize: new(int32(1000))},
		},
		"zero is a value": {
			v1.ReclaimArgs{EvictionConcurrency: new(int32(0)), QueueCooldown: duration(0), VictimTimeout: duration(0), LedgerSize: new(int32(0))},
			v1.ReclaimArgs{EvictionConcurrency: new(int32(0)), QueueCooldown: duration(0), VictimTimeout: duration(0), LedgerSize: new(int32(0))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			got := tc.given.DeepCopy()
			scheme.Default(got)
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
