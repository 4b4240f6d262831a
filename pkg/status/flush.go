// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Flush writes all that differs now, one job after the other in the order of their keys, and returns when it is
// written. It is for who steps a scheduler through time, as pkg/simulate does, and takes the place of Run: a writer is
// either run or flushed.
func (w *Writer) Flush(ctx context.Context) error {
	var keys []model.JobKey
	for job := range w.state.Snapshot().Jobs {
		keys = append(keys, job.Key)
	}
	slices.SortFunc(keys, func(a, b model.JobKey) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var errs []error
	for _, key := range keys {
		if err := w.sync(ctx, key); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, w.tellPods(ctx, key, func(context.Context, time.Duration) {}))
	}
	return errors.Join(errs...)
}

// FlushQueues writes all that differs now of the status of queues, and of what is noted on them. What cannot be written is logged.
func (w *Writer) FlushQueues(ctx context.Context) { w.writeQueues(ctx, newQueueNotes(w)) }

// Close releases what a writer that is not run holds.
func (w *Writer) Close() {
	w.queue.ShutDown()
	w.waiting.ShutDown()
	w.events.Shutdown()
}

// Reasons returns why jobs wait, as far as the writer has been told.
func (w *Writer) Reasons() map[model.JobKey]model.Reason { return w.notices.reasons() }
