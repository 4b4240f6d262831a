// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package tdm_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/testing/placing"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/tdm"
)

func TestZones(t *testing.T) { placing.Walk(t, "zones") }

// TestJobsAreLookedAtAgainWhenAWindowOpens counts what the model is told in a day. A bubble begins at midnight UTC.
func TestJobsAreLookedAtAgainWhenAWindowOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := model.NewState()
		var told []string
		state.Observe(func(c model.Change) {
			if c.Events&model.NodeChanged != 0 {
				told = append(told, time.Now().UTC().Format("15:04:05"))
			}
		})
		args := &config.TDMArgs{RevocableZones: map[string]string{"night": "22:00-6:30", "noon": "12:00-12:30"}}
		if _, err := tdm.New(state, clock.RealClock{})(t.Context(), args, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if want := []string{"06:30:00", "12:00:00", "12:30:00", "22:00:00"}; len(told) != 4 || told[0] != want[0] || told[1] != want[1] || told[2] != want[2] || told[3] != want[3] {
			t.Errorf("jobs are looked at again at %v, want %v", told, want)
		}
	})
}
