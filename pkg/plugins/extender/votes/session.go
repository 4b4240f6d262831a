// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package votes

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/protocol"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// OfTier makes the voter of an entry in the tiers; nil if its extender is not asked about queues and jobs. Places: it is asked about nodes, which is
// the plugin Extender's to do. An error tells which argument is wrong.
func OfTier(ctx context.Context, handle fwk.Handle, state *model.State, c clock.WithTicker, entry *config.TierPlugin, path *field.Path) (v *Voter, places bool, err error) {
	args, errs := arguments.DecodeExtender(entry, path)
	if err := errs.ToAggregate(); err != nil {
		return nil, false, err
	}
	if args.Votes() {
		v = New(klog.NewContext(ctx, klog.FromContext(ctx).WithName("extender")), Config{
			Args:    args,
			Job:     state.Job,
			Session: func() (protocol.Session, error) { return session(handle, state) },
			Changed: func() { state.Raise(model.OutsideAnswered) },
			Clock:   c,
		})
	}
	return v, args.Places(), nil
}

// session is all there is, for an extender that is told of it.
func session(handle fwk.Handle, state *model.State) (protocol.Session, error) {
	s := protocol.Session{Jobs: map[string]*protocol.Job{}, Nodes: map[string]*protocol.Node{}, Queues: map[string]*protocol.Queue{}}
	core := handle.SharedInformerFactory().Core().V1()
	nodes, err := core.Nodes().Lister().List(labels.Everything())
	if err != nil {
		return s, err
	}
	pods, err := core.Pods().Lister().List(labels.Everything())
	if err != nil {
		return s, err
	}
	on := map[string][]*model.Task{}
	for _, pod := range pods {
		task := state.Task(pod.UID)
		if task == nil {
			task = model.NewTask(pod)
		}
		if task.Status.HoldsNode() {
			on[task.Node] = append(on[task.Node], task)
		}
	}
	for _, n := range nodes {
		s.Nodes[n.Name] = protocol.NodeOf(n, on[n.Name])
	}
	snapshot := state.Snapshot()
	for job := range snapshot.Jobs {
		s.Jobs[job.Key.String()] = protocol.JobOf(job)
	}
	for q := range snapshot.Queues {
		s.Queues[q.Name] = protocol.QueueOf(q)
	}
	return s, nil
}
