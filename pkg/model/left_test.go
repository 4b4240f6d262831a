// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestLeftOfAJobThatGoesAsAWhole: of three tasks that go all together none may go before the others, whether it is asked before or after they
// are counted as gone. All of them may as far as that goes; whether the minimum allows it is another question.
func TestLeftOfAJobThatGoesAsAWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		least, gone, more int
		whole             bool
		want              model.Lack
	}{
		"nobody goes":                         {least: 2, whole: true},
		"a surplus one":                       {least: 2, more: 1, whole: true, want: model.LacksOthers},
		"a surplus one, of an ordinary job":   {least: 2, more: 1},
		"one of those without a minimum":      {more: 1, whole: true, want: model.LacksOthers},
		"one that is counted as gone already": {gone: 1, whole: true, want: model.LacksOthers},
		"the last but one":                    {gone: 1, more: 1, whole: true, want: model.LacksOthers},
		"the last":                            {gone: 2, more: 1, whole: true},
		"all":                                 {more: 3, whole: true},
		"all, counted as gone already":        {gone: 3, whole: true},
		"all of those with a minimum":         {least: 2, more: 3, whole: true, want: model.LacksTasks},
	} {
		t.Run(name, func(t *testing.T) {
			job := &model.Job{Group: &model.Group{MinMember: tc.least, Whole: tc.whole}}
			job.Counts.ByStatus[model.Running] = 3
			left := job.Left()
			left.Count(&model.Task{}, -tc.gone)
			if got := left.Without(&model.Task{}, tc.more); got != tc.want {
				t.Errorf("it would lack %d, want %d", got, tc.want)
			}
		})
	}
}
