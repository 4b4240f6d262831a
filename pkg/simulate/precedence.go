// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"errors"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Precedence has a scheduler take in objects, and says which of two jobs that wait it would give a turn first. Nothing is placed. The objects are those of
// scenario.Complete and are not changed; of the options only the configuration, the extensions, the time and the patience count.
func Precedence(ctx context.Context, objects []scenario.Object, o Options, a, b func(model.JobKey) bool) (dispatch.Precedence, error) {
	c, err := newCluster(ctx, objects, o)
	if err != nil {
		return dispatch.Precedence{}, err
	}
	defer c.box.Stop()
	if err := c.box.Start(); err != nil {
		return dispatch.Precedence{}, err
	}
	var keys [2]*model.JobKey
	for job := range c.box.Core.State.Snapshot().Jobs {
		if a(job.Key) {
			keys[0] = &job.Key
		}
		if b(job.Key) {
			keys[1] = &job.Key
		}
	}
	if keys[0] == nil || keys[1] == nil {
		return dispatch.Precedence{}, errors.New("a job is gone that was there a moment ago")
	}
	p, wait := c.box.Core.Dispatcher.View().Precedence(*keys[0], *keys[1])
	if !wait {
		return dispatch.Precedence{}, errors.New("a job has started that waited a moment ago")
	}
	return p, nil
}
