// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/caldera-scheduler/caldera/test/harm"
)

// kind is one way in which work cannot run.
type kind struct {
	name, about string
	// size is the pods of a job; 0 is 1.
	size int
	// minMember is that of the job's PodGroup; 0 is a job without a PodGroup.
	minMember int32
	// noGroup leaves out the PodGroup that the pods name.
	noGroup bool
	// queue is the queue of the PodGroup; empty is the default queue.
	queue string
	// batchOnly: nothing but its PodGroup makes it hopeless, so plain pods of it would run.
	batchOnly bool
	// turns: a spare node makes one of the jobs possible.
	turns bool
	// pool is the pool that the spare node joins then; empty is the full nodes.
	pool string
	// millicores is what each pod asks for in the first shape; nil is one core.
	millicores func(fill int) int64
	// spoil makes a pod hopeless; nil: what it asks for, or its group, does.
	spoil func(p *corev1.Pod)
	// shared are objects that there are once, made before the jobs.
	shared []runtime.Object
	// own returns what belongs to one pod and is made before it.
	own func(pod string) []runtime.Object
	// after are objects made when all jobs are there.
	after []runtime.Object
	// disturb does something for the n-th time, 10 times a second.
	disturb func(ctx context.Context, c clients, s scenario, n int) error
	// refused: the API server refuses to bind the pods.
	refused bool
	// extender is how the extender behaves that the pods need; nil: they need none.
	extender *harm.Manner
	// few is how many jobs there are at most; 0 is as many as --hopeless says.
	few int
}

const gangSize = 4

// kinds are all ways in which work cannot run.
var kinds = []kind{
	{name: "gangs-full", about: "gangs of 4 that select nodes that are full, on which pods of others end", size: gangSize, minMember: gangSize, turns: true, millicores: nearlyFull, spoil: selectFull},
	{name: "gangs-kept", about: "gangs of 4 that select nodes that are full, while pods of others end elsewhere", size: gangSize, minMember: gangSize, turns: true, pool: poolKept, millicores: always(500), spoil: selectKept},
	{name: "gangs-totals", about: "gangs of 4 for which there is room in total, but on no node for one pod", size: gangSize, minMember: gangSize, turns: true, millicores: always(6000)},
	{name: "full-nodes", about: "pods that select nodes that are full, on which pods of others end", turns: true, millicores: nearlyFull, spoil: selectFull},
	{name: "full-kept", about: "pods that select nodes that are full, while pods of others end elsewhere", turns: true, pool: poolKept, millicores: always(500), spoil: selectKept},
	{name: "no-node", about: "pods that select no node at all", spoil: selectNone},
	{name: "too-big", about: "pods that ask for more than any node has", millicores: always(64_000)},
	{name: "gated", about: "pods with a scheduling gate that never opens", spoil: gate},
	{name: "pvc-missing", about: "pods that name a claim of a volume that is missing", spoil: mountMissing},
	{name: "other-zone", about: "pods with a volume in the zone where all nodes are full", millicores: nearlyFull, spoil: mountOwn, own: volumeInFullZone},
	{name: "affinity-nowhere", about: "pods with required affinity to a pod that is nowhere", spoil: followNobody},
	{name: "spread-nowhere", about: "pods spread over a label that no node has", spoil: spreadNowhere},
	{name: "host-ports", about: "pods with a host port that is taken on every node they select", spoil: wantTakenPort},
	{name: "claim-missing", about: "pods that name a resource claim that is missing", spoil: claimMissing},
	{name: "claim-late", about: "pods whose resource claim is made late, or never, for devices that nobody has", spoil: claimByTemplate, shared: deviceTemplate(), disturb: makeClaim},
	{name: "devices-nobody", about: "pods with a resource claim for devices that nobody has", spoil: claimOwn, shared: []runtime.Object{deviceClass()}, own: ownClaim},
	{name: "annotated", about: "pods that select no node, whose annotations are rewritten 10 times a second", spoil: selectNone, disturb: annotatePod},
	{name: "relabelled", about: "pods that select no node, while labels of nodes change 10 times a second", spoil: selectNone, disturb: relabelNode},
	{name: "priority", about: "pods of high priority for which there is room in total, but on no node", millicores: always(6000), spoil: hurry},
	{name: "elastic", about: "groups of 10 pods, of which 1 would do, that select nodes that are full", size: 10, minMember: 1, millicores: nearlyFull, spoil: selectFull},
	{name: "min-flaps", about: "gangs of 4 that select full nodes, whose minMember changes 10 times a second", size: gangSize, minMember: gangSize, millicores: nearlyFull, spoil: selectFull, disturb: flapMinMember},
	{name: "group-missing", about: "pods that name a PodGroup that is missing", minMember: 1, noGroup: true, batchOnly: true},
	{name: "queue-missing", about: "gangs of 4 in a queue that is missing", size: gangSize, minMember: gangSize, queue: "nowhere", batchOnly: true},
	{name: "queue-full", about: "gangs of 4 in a queue whose capability is less than they ask for", size: gangSize, minMember: gangSize, queue: "narrow", batchOnly: true, shared: []runtime.Object{narrowQueue()}},
	{name: "quota-full", about: "gangs of 4 that select full nodes, in a namespace whose quota is exhausted", size: gangSize, minMember: gangSize, millicores: nearlyFull, spoil: selectFull, after: []runtime.Object{exhaustedQuota()}},
	{name: "binds-refused", about: "pods that fit, and that a policy of the API server refuses to bind", refused: true, shared: refusedBinds()},
	{name: "extender-dead", about: "a gang of 4, the only one, that needs an extender which closes connections", size: gangSize, minMember: gangSize, few: 1, extender: new(harm.Refuses), spoil: needLicence},
	{name: "extender-hangs", about: "a gang of 4, the only one, that needs an extender which does not answer within its time-out of a second", size: gangSize, minMember: gangSize, few: 1, extender: new(harm.Hangs), spoil: needLicence},
}

// describeKinds lists the kinds for people.
func describeKinds() string {
	var lines strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&lines, "  %-17s %s\n", k.name, k.about)
	}
	return lines.String()
}

func parseKinds(names []string) ([]kind, error) {
	if slices.Equal(names, []string{"all"}) {
		return kinds, nil
	}
	var list []kind
	for _, name := range names {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--kinds has %q, which there is not: use \"all\" or\n%s", name, describeKinds())
		}
		list = append(list, kinds[i])
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("--kinds is empty: use \"all\" or\n%s", describeKinds())
	}
	return list, nil
}

// pods is how many pods a job has.
func (k kind) pods() int { return max(k.size, 1) }

// jobs is how many jobs there are.
func (k kind) jobs(s scenario) int {
	if k.few > 0 {
		return min(k.few, s.Hopeless)
	}
	return s.Hopeless
}

// request is what each pod of a job asks for, in millicores. Shapes differ by one.
func (k kind) request(s scenario, job int) int64 {
	first := int64(1000)
	if k.millicores != nil {
		first = k.millicores(s.Fill)
	}
	return first + int64(job%s.Shapes)
}

// spareCores is the size of a node that has room for one job of any shape and for no second one, in millicores.
func (k kind) spareCores(s scenario) int64 {
	return int64(k.pods()) * (k.request(s, 0) + int64(s.Shapes-1))
}

func always(millicores int64) func(int) int64 { return func(int) int64 { return millicores } }

// nearlyFull is more than a full node has free as long as one of the pods that fill it is there, and less than it has in all.
func nearlyFull(fill int) int64 { return int64(fill)*fillerMillicores - 600 }
