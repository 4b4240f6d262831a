// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
)

// WhyNone says, for people, why each configured action that MayEvict leaves out has nobody to offer to a starving job; empty
// when it leaves none out.
func (s *Set) WhyNone(job *model.Job) string {
	may := s.MayEvict(job)
	var parts []string
	for _, action := range s.actions {
		if !slices.Contains(may, action) {
			parts = append(parts, string(action)+": "+s.whyNone(s.ruleSet(action), job))
		}
	}
	return strings.Join(parts, "; ")
}

func (s *Set) whyNone(c *ruleSet, job *model.Job) string {
	q := s.book.Queue(job.Queue)
	switch {
	case !c.offers():
		return "no plugin in the tiers chooses victims for it"
	case c.inside() && c.byPriority:
		return "no job of lower priority in its queue has anything on nodes"
	case c.inside():
		return "no other job in its queue has anything on nodes"
	case !s.entitledToNext(q, job):
		return s.entitled(q, job, job.Need()).Message
	}
	if c.freely || c.moves != nil {
		return "no other queue that is reclaimable holds anything"
	}
	protected := slices.ContainsFunc(s.book.Queues(), func(other *account.Queue) bool {
		return other != q && other.Spec != nil && !other.Spec.Reclaimable && s.ahead(other)
	})
	if protected {
		return "the queues that hold more than they deserve are not reclaimable"
	}
	return "no other queue holds more than it deserves"
}
