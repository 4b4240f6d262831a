// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
)

func TestGangArgs(t *testing.T) {
	path := field.NewPath("profiles").Index(1).Child("pluginConfig").Key("Gang")
	timeout := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	const limits = "must be more than 0s and at most 15m"
	for name, tc := range map[string]struct {
		args config.GangArgs
		want []string
	}{
		"the defaults":         {config.GangArgs{BindConcurrency: 64, ReservationTimeout: timeout(5 * time.Minute), ScheduledEvents: config.PerPod}, nil},
		"the smallest values":  {config.GangArgs{BindConcurrency: 1, ReservationTimeout: timeout(1), ScheduledEvents: config.PerPod}, nil},
		"the largest timeout":  {config.GangArgs{BindConcurrency: 1, ReservationTimeout: timeout(15 * time.Minute), ScheduledEvents: config.PerPod}, nil},
		"nobody may bind":      {config.GangArgs{ReservationTimeout: timeout(time.Minute), ScheduledEvents: config.PerPod}, []string{`profiles[1].pluginConfig[Gang].bindConcurrency: Invalid value: 0: must be at least 1`}},
		"less than nobody":     {config.GangArgs{BindConcurrency: -4, ReservationTimeout: timeout(time.Minute), ScheduledEvents: config.PerPod}, []string{`profiles[1].pluginConfig[Gang].bindConcurrency: Invalid value: -4: must be at least 1`}},
		"longer than upstream": {config.GangArgs{BindConcurrency: 1, ReservationTimeout: timeout(15*time.Minute + 1), ScheduledEvents: config.PerPod}, []string{`profiles[1].pluginConfig[Gang].reservationTimeout: Invalid value: "15m0.000000001s": ` + limits}},
		"events of neither": {
			config.GangArgs{BindConcurrency: 1, ReservationTimeout: timeout(1), ScheduledEvents: "Never"},
			[]string{`profiles[1].pluginConfig[Gang].scheduledEvents: Unsupported value: "Never": supported values: "PerGang", "PerPod"`},
		},
		"no time to wait": {config.GangArgs{BindConcurrency: 1, ScheduledEvents: config.PerPod}, []string{`profiles[1].pluginConfig[Gang].reservationTimeout: Invalid value: "0s": ` + limits}},
		"both are wrong, and both are told": {
			config.GangArgs{ReservationTimeout: timeout(-time.Second), ScheduledEvents: config.PerPod},
			[]string{
				`profiles[1].pluginConfig[Gang].bindConcurrency: Invalid value: 0: must be at least 1`,
				`profiles[1].pluginConfig[Gang].reservationTimeout: Invalid value: "-1s": ` + limits,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, messages(validation.ValidateGangArgs(path, &tc.args))); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

// messages are those of all errors that one is made of, sorted.
func messages(err error) []string {
	if err == nil {
		return nil
	}
	var all utilerrors.Aggregate
	if !errors.As(err, &all) {
		return []string{err.Error()}
	}
	var list []string
	for _, e := range all.Errors() {
		list = append(list, e.Error())
	}
	slices.Sort(list)
	return list
}
