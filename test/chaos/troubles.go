// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/harm"
)

// outage is for how long the control plane stands still.
const outage = 3 * time.Second

// trouble is what goes wrong.
type trouble struct {
	name, what string
	// room is how many times the room that the gangs of a round take there is, 0 for once; standbys is how many schedulers wait to lead.
	room, standbys int
	// open prepares the cluster, and configure the scheduler and the arguments of BatchQueue; adorn changes gangs. Any may be nil.
	open      func(ctx context.Context, s *stage) error
	configure func(s *stage, config, args map[string]any)
	adorn     func(gang string, group *volcano.PodGroup, pod *corev1.PodSpec)
	// round plays a round. An error is a fault of the test.
	round func(s *stage, ctx context.Context, r *round) error
}

// troubles are all there are, each done on a cluster of its own.
func troubles() []trouble {
	return []trouble{
		{name: "kill", what: "the scheduler is killed after a bind", round: (*stage).kill},
		{
			name: "takeover", what: "the leader of two schedulers is killed after an eviction", room: 2, standbys: 1,
			open: func(ctx context.Context, s *stage) error { return s.createUrgent(ctx) }, configure: elected, adorn: hurried, round: (*stage).takeover,
		},
		{name: "restart", what: "the control plane restarts after a bind", round: (*stage).restart},
		{name: "pause", what: fmt.Sprintf("the control plane, etcd included, stands still for %s after a bind", outage), round: (*stage).pause},
		{
			name: "refusal", what: "a policy of the API server refuses to bind some pods of one gang", open: bindings.announce,
			round: (*stage).refuseBinding,
		},
		{
			name: "refused-eviction", what: "a policy of the API server refuses to evict a pod of each node", room: 2,
			open: crowded, configure: evictor, adorn: hurried, round: (*stage).refuseEviction,
		},
		{name: "extender-dead", what: "an extender that one gang needs does not answer", configure: extended, adorn: licensed, round: (*stage).dead},
		{name: "extender-hangs", what: "an extender that one gang needs takes requests, and answers none", configure: extended, adorn: licensed, round: (*stage).hangs},
	}
}

// kill kills the scheduler between two binds.
func (s *stage) kill(ctx context.Context, r *round) error {
	if err := s.launch(ctx, r, bound); err != nil {
		return err
	}
	if err := s.crash(); err != nil {
		return err
	}
	at := time.Now()
	if err := s.watcher.catchUp(ctx, s.kube); err != nil {
		return err
	}
	before := s.halves(r)
	if r.Blocked = r.Halves > 0 && s.Blocked > 0 && r.number%s.Blocked == s.Blocked-1; r.Blocked {
		r.mayRelease = true
		if err := s.fill(ctx, r); err != nil {
			return err
		}
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	return s.follow(ctx, r, before, at)
}

// halves counts which gangs are half placed now.
func (s *stage) halves(r *round) map[string]gang {
	now := s.watcher.gangs(r.gangs)
	for _, g := range now {
		if g.half(s.Size) {
			r.Halves++
		}
	}
	return now
}

// takeover kills the leader while others are being evicted for the gangs. The next one must go on with what has been begun: whoever it evicts
// besides has been evicted for nothing.
func (s *stage) takeover(ctx context.Context, r *round) error {
	if err := s.crowd(ctx, r); err != nil {
		return err
	}
	if err := s.launch(ctx, r, evicted); err != nil {
		return err
	}
	if err := s.crash(); err != nil {
		return err
	}
	if err := s.follow(ctx, r, s.halves(r), time.Now()); err != nil {
		return err
	}
	s.count(r)
	return s.start(ctx) // the next standby, now that somebody else leads for certain
}

// count counts the pods that were evicted: one for each member.
func (s *stage) count(r *round) {
	victims := s.watcher.evictions()
	for _, n := range victims {
		r.Evicted += n
	}
	if want := s.Gangs * s.Size; r.Evicted != want {
		r.fail("%d pods were evicted for %d: %v", r.Evicted, want, victims)
	}
}

// evictor has a scheduler evict.
func evictor(_ *stage, _, args map[string]any) {
	args["actions"] = []any{"enqueue", "allocate", "preempt", "backfill"}
}

// crowded prepares a cluster where gangs have others evicted, and some may not be.
func crowded(ctx context.Context, s *stage) error {
	return errors.Join(s.createUrgent(ctx), evicting.announce(ctx, s))
}

// elected has a scheduler lead by a lease that ends soon, and evict.
func elected(s *stage, config, args map[string]any) {
	config["leaderElection"] = map[string]any{
		"leaderElect": true, "resourceLock": "leases", "resourceNamespace": namespace, "resourceName": "chaos",
		"leaseDuration": "2s", "renewDeadline": "1500ms", "retryPeriod": "200ms",
	}
	evictor(s, config, args)
}

// led returns when somebody leads.
func (s *stage) led(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		lease, err := s.kube.CoordinationV1().Leases(namespace).Get(ctx, "chaos", metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
	})
	if err != nil {
		return fmt.Errorf("no scheduler leads: %w", err)
	}
	return nil
}

func hurried(_ string, group *volcano.PodGroup, pod *corev1.PodSpec) {
	group.Spec.PriorityClassName, pod.PriorityClassName = urgent, urgent
}

// restart ends the control plane between two binds, and starts it again with what it had written.
func (s *stage) restart(ctx context.Context, r *round) error {
	if err := s.launch(ctx, r, bound); err != nil {
		return err
	}
	at, before := time.Now(), s.halves(r)
	if err := s.cluster.Stop(); err != nil {
		return err
	}
	var err error
	if s.cluster, err = localcluster.Start(ctx, s.placing); err != nil {
		return err
	}
	r.mayRelease = true
	return s.follow(ctx, r, before, at)
}

// pause has the control plane stand still between two binds: connections stay open, and nobody answers.
func (s *stage) pause(ctx context.Context, r *round) error {
	if err := s.launch(ctx, r, bound); err != nil {
		return err
	}
	at, before := time.Now(), s.halves(r)
	if err := s.cluster.Pause(); err != nil {
		return err
	}
	time.Sleep(outage)
	if err := s.cluster.Resume(); err != nil {
		return err
	}
	r.mayRelease = true
	return s.follow(ctx, r, before, at)
}

// apart waits until all gangs but the first are whole, which are none of the trouble's affair.
func (s *stage) apart(ctx context.Context, r *round, created time.Time) {
	rest := r.gangs[1:]
	if len(rest) == 0 {
		return
	}
	if !s.await(ctx, rest, newHalves(nil, s.Size, created), created.Add(s.Patience), func(now map[string]gang) bool { return s.whole(now, rest) }) {
		r.fail("gangs that the trouble is no affair of are not whole after %s", s.Patience)
	}
	r.Others = time.Since(created)
}

// meanwhile creates the gangs of a round, of which the first cannot start, waits for the others, and ends what keeps the first.
func (s *stage) meanwhile(ctx context.Context, r *round, end func(context.Context) error) error {
	created := time.Now()
	for _, name := range r.gangs {
		if err := s.create(ctx, name); err != nil {
			return err
		}
	}
	s.apart(ctx, r, created)
	// The first one is to meet the trouble, too, more than once.
	select {
	case <-time.After(outage):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	now := s.halves(r)
	if err := end(ctx); err != nil {
		return err
	}
	r.mayRelease = true
	return s.follow(ctx, r, now, created)
}

func (s *stage) dead(ctx context.Context, r *round) error  { return s.without(ctx, r, harm.Refuses) }
func (s *stage) hangs(ctx context.Context, r *round) error { return s.without(ctx, r, harm.Hangs) }

// without plays a round in which the extender is not well until the end.
func (s *stage) without(ctx context.Context, r *round, how harm.Manner) error {
	s.licences.Behave(how)
	return s.meanwhile(ctx, r, func(context.Context) error {
		if n := len(s.watcher.gangs(r.gangs)[r.gangs[0]].bound); n > 0 {
			r.fail("%d members were bound that the extender was not asked about", n)
		}
		s.licences.Behave(harm.Answers)
		return nil
	})
}

// licence is the resource that the extender looks after, of which all nodes have plenty.
const licence = "chaos.caldera.dev/licence"

func extended(s *stage, config, _ map[string]any) {
	config["extenders"] = []any{map[string]any{
		"urlPrefix": s.licences.URL(), "filterVerb": "filter", "httpTimeout": "1s", "nodeCacheCapable": true,
		"managedResources": []any{map[string]any{"name": licence}},
	}}
}

// licensed has the first gang of a round need the extender.
func licensed(gang string, _ *volcano.PodGroup, pod *corev1.PodSpec) {
	if strings.HasSuffix(gang, "-0") {
		one := corev1.ResourceList{licence: resource.MustParse("1")}
		pod.Containers[0].Resources.Limits = one
		pod.Containers[0].Resources.Requests[licence] = one[licence]
	}
}

// startScheduler runs a scheduler with a directory of its own.
func startScheduler(dir string, o schedulerprocess.Options) (*schedulerprocess.Process, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	o.Dir = dir
	return schedulerprocess.Start(o)
}
