// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/protocol"
)

// departuresAtATime is how many calls about evictions are under way at a time.
const departuresAtATime = 4

// departures tell the extender of tasks that the scheduler has decided to evict, and of those among them that stay after all. Nobody waits for
// that. Source: Volcano's pkg/scheduler/framework/statement.go, whose Evict and unevict have event handlers told.
type departures struct {
	plugin *Extender
	// profile is the scheduler whose pods are told of: there may be several profiles with the plugin.
	profile string
	queue   workqueue.TypedInterface[types.UID]

	mu    sync.Mutex // guards the rest
	tasks map[types.UID]*departure
}

// departure is a task that was to be evicted at some time.
type departure struct {
	task *model.Task
	// leaves: it is to go; told: the extender knows that. Gone: nothing more is to come of it.
	leaves, told, gone bool
}

// follow begins to tell of evictions. It ends with the context.
func (pl *Extender) follow(ctx context.Context, profile string) {
	d := &departures{plugin: pl, profile: profile, queue: workqueue.NewTyped[types.UID](), tasks: map[types.UID]*departure{}}
	stop := pl.state.Observe(d.notice)
	context.AfterFunc(ctx, func() {
		stop()
		d.queue.ShutDown()
	})
	for range departuresAtATime {
		go func() {
			for d.next(ctx) {
			}
		}()
	}
}

// notice takes in what changed in the model.
func (d *departures) notice(c model.Change) {
	for _, uid := range c.Tasks {
		if d.enter(uid, d.plugin.state.Task(uid)) {
			d.queue.Add(uid)
		}
	}
}

// enter takes in what became of a task, which is nil if it is gone, and reports whether that may be something to tell.
func (d *departures) enter(uid types.UID, t *model.Task) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.tasks[uid]
	switch {
	case known == nil && (t == nil || !t.Evicting || t.Pod.Spec.SchedulerName != d.profile):
		return false
	case known == nil:
		d.tasks[uid] = &departure{task: t, leaves: true}
	case t == nil || !t.Evicting && (t.Status == model.Releasing || t.Completed()):
		// It went as was told, or is to be.
		known.gone = true
	default:
		known.task, known.leaves = t, t.Evicting
	}
	return true
}

// next tells of one task. It returns false when there will be no more.
func (d *departures) next(ctx context.Context) bool {
	uid, closed := d.queue.Get()
	if closed {
		return false
	}
	defer d.queue.Done(uid)
	d.mu.Lock()
	known := d.tasks[uid]
	if known == nil {
		d.mu.Unlock()
		return true
	}
	task, leaves, told := known.task, known.leaves, known.told
	d.mu.Unlock()
	if leaves != told {
		d.tell(ctx, task, leaves)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known.told = leaves
	if known.leaves == known.told && (known.gone || !known.leaves) {
		delete(d.tasks, uid)
	}
	return true
}

// tell tells that a task leaves its node, or that it keeps it after all.
func (d *departures) tell(ctx context.Context, t *model.Task, leaves bool) {
	pl, verb, status := d.plugin, d.plugin.args.AllocateFuncVerb, t.Status
	if leaves {
		verb, status = pl.args.DeallocateFuncVerb, model.Releasing
	}
	if !pl.asks(verb, t.Pod) {
		return
	}
	var receipt protocol.Receipt
	err := pl.client.Call(ctx, verb, pl.placed(t.Pod, t.Node, status), &receipt)
	if err == nil && receipt.Message != "" {
		err = errors.New(receipt.Message)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Extender was not told of an eviction", "pod", klog.KObj(t.Pod), "node", t.Node, "leaves", leaves)
	}
}
