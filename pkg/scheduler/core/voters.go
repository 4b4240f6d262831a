// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// PolicyFactory makes a policy of an entry in the tiers: something that has hooks of package policy. It reads the entry's
// arguments itself.
type PolicyFactory func(entry *config.TierPlugin) (any, error)

// Voter is a policy of the tiers that asks somebody else, and may have to wait for the answer.
type Voter interface {
	// Run does what has to be done while its rules are in force, until the context ends.
	Run(ctx context.Context)
	// Asking reports whether it waits for an answer.
	Asking() bool
	// ExternalHold says why nothing may start, and when to try again; the zero Reason when something may.
	ExternalHold() (reason model.Reason, again time.Time)
	// AloneInTurns reports whether it is asked if jobs are ready; then a turn is for one job.
	AloneInTurns() bool
	// Ready says why a job is not ready, and when to try again; the zero Reason when it is.
	Ready(ctx context.Context, job *model.Job) (reason model.Reason, again time.Time)
	// Choose is its vote on which of the candidates may be evicted for a task; inside: by a job of the same queue.
	Choose(ctx context.Context, inside bool, evictor *model.Task, candidates []*model.Task) (policy.Vote, map[types.UID]bool)
}

// VoterFactory makes the voter of an entry in the tiers; nil if it has nothing to vote on. Places: it says where pods may go, too, which a plugin
// of the profiles asks. An error tells which argument is wrong.
type VoterFactory func(ctx context.Context, handle fwk.Handle, entry *config.TierPlugin, path *field.Path) (v Voter, places bool, err error)

// RegisterVoter has entries of a name in the tiers make a voter. It must be called before Configure.
func (c *Core) RegisterVoter(name string, factory VoterFactory) { c.setup.voters[name] = factory }

// outsiders make the policies from outside of package policy: those that the options tell how to make, and what has registered as a voter.
type outsiders struct {
	policies map[string]PolicyFactory
	voters   map[string]VoterFactory
}

// build builds those that the tiers name, and notes in the rules who votes.
func (o outsiders) build(ctx context.Context, handle fwk.Handle, args *config.BatchQueueArgs, r *Rules) ([]policy.Extension, error) {
	var all []policy.Extension
	for i := range args.Tiers {
		for k := range args.Tiers[i].Plugins {
			entry := &args.Tiers[i].Plugins[k]
			path := field.NewPath("tiers").Index(i).Child("plugins").Index(k)
			if factory := o.policies[entry.Name]; factory != nil {
				p, err := factory(entry)
				if err != nil {
					return nil, fmt.Errorf("building the policy %s at %s: %w", entry.Name, path, err)
				}
				all = append(all, policy.Extension{Plugin: entry.Name, Policy: p})
			}
			if factory := o.voters[entry.Name]; factory != nil {
				voter, places, err := factory(ctx, handle, entry, path)
				if err != nil {
					return nil, err
				}
				r.placesOutside = r.placesOutside || places
				if voter != nil {
					r.voter = voter
					all = append(all, policy.Extension{Plugin: entry.Name, Policy: voter})
				}
			}
		}
	}
	return all, nil
}
