// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import "github.com/caldera-scheduler/caldera/pkg/model"

// queueBlocks tells by queue why its jobs have no turns, as last found. Its method is called with the dispatcher's lock held.
type queueBlocks struct {
	cfg     *Config
	outbox  *outbox
	byQueue map[string]model.Reason
}

// renew asks anew, and returns the queues whose answer has changed. It has it told when one is left out of scheduling, or no longer is.
func (b queueBlocks) renew() (changed map[string]bool) {
	changed, known := map[string]bool{}, map[string]bool{}
	for _, q := range b.cfg.Policies.Book().Queues() {
		known[q.Name] = true
		now := b.cfg.Policies.QueueBlocked(&model.Job{Queue: q.Name})
		before, had := b.byQueue[q.Name]
		if had && before == now {
			continue
		}
		b.byQueue[q.Name], changed[q.Name] = now, true
		switch {
		case q.Spec == nil:
		case now.Kind == model.QueueMisconfigured:
			b.outbox.fault(q.Spec, now)
		case before.Kind == model.QueueMisconfigured:
			b.outbox.fault(q.Spec, model.Reason{})
		}
	}
	for name := range b.byQueue {
		if !known[name] {
			delete(b.byQueue, name)
			changed[name] = true
		}
	}
	return changed
}
