// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// decided is the outcome for the parts of a job that were looked at so far.
type decided struct {
	placed  []Placement
	victims []model.Victim
	fragile bool
	// undos take the trial reservations back, last first.
	undos []func(context.Context)
	// overlay is that of the last part, if it was placed, so that the next one on the same nodes goes on with it.
	overlay *overlay
}

// taken is, by node, what these parts will take, less what their victims will leave.
func (d *decided) taken() map[string]resource.Vector {
	taken := map[string]resource.Vector{}
	add := func(node string, v resource.Vector, n int64) {
		sum := taken[node]
		sum.AddTimes(v, n)
		taken[node] = sum
	}
	for _, p := range d.placed {
		add(p.Node, p.Task.Request, 1)
	}
	for _, v := range d.victims {
		add(v.Task.Node, v.Task.Request, -1)
	}
	return taken
}

// settle counts against the queue's budget what was decided before.
func (a *attempt) settle() {
	if a.before == nil {
		return
	}
	for _, p := range a.before.placed {
		a.budget.Take(p.Task.Charge)
	}
	for _, v := range a.before.victims {
		a.budget.Release(v.Job.Queue, v.Task.Charge)
	}
}

// resume goes on with the overlay of the part before, if that was planned on the same nodes, and reports whether it does: all that was placed
// is there, and all for which room is kept. For tasks of a divided job itself room is not kept then.
func (a *attempt) resume() bool {
	if a.before == nil || a.job.Counts.Nominated > 0 {
		return false
	}
	o := a.before.overlay
	a.before.overlay = nil
	if o == nil || len(o.nodes) != len(a.overlay.nodes) || &o.nodes[0] != &a.overlay.nodes[0] {
		return false
	}
	a.overlay, a.keeps = o, true
	return true
}

// handOver leaves the trial reservations of a part in place while the others are planned, which might be promised the same otherwise, and
// its overlay.
func (a *attempt) handOver(ctx context.Context) error {
	if a.before == nil {
		return nil
	}
	a.before.undos, a.undos = append(a.before.undos, a.undos...), nil
	if a.evictor == nil {
		if err := a.recordLast(ctx); err != nil {
			return err
		}
		a.before.overlay = a.overlay
	}
	return nil
}

// divided reports whether tasks of a job are in subgroups.
func divided(job *model.Job) bool { return len(job.SubGroups) > 0 }

// assembly is the plan of a divided job, part by part.
type assembly struct {
	decided
	request Request
	parts   []model.Part
	need    need
	// extra is how many tasks a part has to place beyond its size, by its position among the parts.
	extra []int
	// one: parts are asked for what they place beyond their sizes task by task.
	one bool
	refusedParts
	// domains are where parts may be, by the same.
	domains  map[string]choice
	byLabels bool
}

// refusedParts are the parts for which there was no room.
type refusedParts struct {
	// first is the one that was refused first, and reason why.
	first  *model.Part
	reason model.Reason
	doubts Doubts
	// hopeless are the refused ones by what they ask for: others like them are refused, too.
	hopeless map[string]bool
}

// choice is where a part may be, or why it may be nowhere.
type choice struct {
	domains []Domain
	refusal string
}

func assemble(r Request, byLabels bool) *assembly {
	s := &assembly{request: r, parts: r.Job.Parts(), need: needOf(r.Job.Requirement()), refusedParts: refusedParts{hopeless: map[string]bool{}}, domains: map[string]choice{}, byLabels: byLabels}
	s.spread()
	return s
}

// need counts down what a divided job has to place yet.
type need struct {
	// step: anything that can be placed will do. Placed: something was.
	step      bool
	placed    bool
	tasks     int
	roles     map[string]int
	subGroups []int
}

func needOf(r model.Requirement) need {
	return need{step: !r.Gang, tasks: r.Tasks, roles: maps.Clone(r.Roles), subGroups: slices.Clone(r.SubGroups)}
}

func (n *need) met() bool {
	if n.step || !n.placed {
		return n.placed
	}
	return n.tasks <= 0 && !n.ofRoles() && !slices.ContainsFunc(n.subGroups, func(k int) bool { return k > 0 })
}

// ofRoles reports whether tasks of a role are needed.
func (n *need) ofRoles() bool {
	for _, k := range n.roles {
		if k > 0 {
			return true
		}
	}
	return false
}

// within returns how many tasks of each role are needed that a part has, and how many that are in all.
func (n *need) within(part *model.Job) (roles map[string]int, tasks int) {
	for role, k := range n.roles {
		c := part.Role(role)
		if k = min(k, c.Placeable()-c.PendingBestEffort); k > 0 {
			if roles == nil {
				roles = map[string]int{}
			}
			roles[role] = k
			tasks += k
		}
	}
	return roles, tasks
}

// ofPolicy is how many subgroups of a policy have to become whole; 0 for tasks in none.
func (n *need) ofPolicy(policy int) int {
	if policy < 0 || policy >= len(n.subGroups) {
		return 0
	}
	return n.subGroups[policy]
}

// spread has parts place more than their sizes where these do not come to the job's minimum.
func (s *assembly) spread() {
	s.extra = make([]int, len(s.parts))
	if s.need.step {
		return
	}
	short := s.need.tasks
	for _, part := range s.parts {
		switch n := asking(part); {
		case part.Policy < 0:
			short -= n
		case part.Lacks() <= n:
			short -= part.Lacks()
		}
	}
	for i, part := range s.parts {
		if part.Policy < 0 || short <= 0 {
			continue
		}
		s.extra[i] = max(0, min(short, asking(part)-part.Lacks()))
		short -= s.extra[i]
	}
}

// asking is how many tasks of a part could be placed toward a minimum.
func asking(part model.Part) int {
	return part.Job.Counts.Placeable() - part.Job.Counts.PendingBestEffort
}

// next returns a part with what it has to place; nil when nothing of it is needed, or its pods are not all there. Best-effort tasks that count
// as placed are placed along, at last.
func (s *assembly) next(i int) *model.Job {
	part := s.parts[i]
	if s.need.step {
		if part.Job.Counts.Placeable() < part.Job.Requirement().Tasks {
			return nil
		}
		return part.Job
	}
	roles, ofRoles := s.need.within(part.Job)
	n := part.Lacks() + s.extra[i]
	if part.Policy < 0 {
		n = max(0, s.need.tasks)
	}
	n = max(n, ofRoles)
	switch {
	case part.Policy >= 0 && part.Lacks()+s.extra[i] > asking(part):
		return nil
	case n == 0 && part.Job.Counts.PendingBestEffort > 0 && (part.Policy < 0 || !part.Job.Started()):
		return part.Needing(0, nil)
	case n == 0 || s.need.tasks <= 0 && ofRoles == 0 && s.need.ofPolicy(part.Policy) == 0:
		return nil
	}
	return part.Needing(n, roles)
}

// take counts tasks of a part as placed.
func (s *assembly) take(part model.Part, tasks []*model.Task) {
	s.need.placed = s.need.placed || len(tasks) > 0
	for _, t := range tasks {
		if t.BestEffort && !s.need.step {
			continue
		}
		s.need.tasks--
		if s.need.roles[t.Role] > 0 {
			s.need.roles[t.Role]--
		}
	}
	if s.need.ofPolicy(part.Policy) > 0 && part.Lacks() > 0 {
		s.need.subGroups[part.Policy]--
	}
}

// refused notes why a part was refused.
func (s *assembly) refused(part model.Part, job *model.Job, reason model.Reason, d Doubts) {
	if s.first == nil || s.reason.Subject == nowhereSubject && reason.Subject != nowhereSubject {
		s.first, s.reason = &part, reason
	}
	s.doubts.add(d)
	if signature, ok := s.signature(part, job); ok {
		s.hopeless[signature] = true
	}
}

// signature is the same for parts that are refused together; false for one that holds nodes, or for which room is kept.
func (s *assembly) signature(part model.Part, job *model.Job) (string, bool) {
	if job.Counts.Ready() > 0 || job.Counts.Nominated > 0 {
		return "", false
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%d %d", part.Policy, job.Requirement().Tasks)
	sums := map[model.Class]int{}
	for _, d := range job.Pending {
		if s.byLabels {
			sums[d.Class] += d.Count
		} else {
			sums[d.Ask] += d.Count
		}
	}
	for _, ask := range slices.SortedFunc(maps.Keys(sums), func(a, b model.Class) int { return bytes.Compare(a[:], b[:]) }) {
		fmt.Fprintf(&out, " %x=%d", ask, sums[ask])
	}
	return out.String(), true
}

// likeRefused reports whether a part is like one that was refused.
func (s *assembly) likeRefused(part model.Part, job *model.Job) bool {
	if len(s.hopeless) == 0 {
		return false
	}
	signature, ok := s.signature(part, job)
	return ok && s.hopeless[signature]
}

// ask is the request for a part.
func (s *assembly) ask(job *model.Job) Request {
	r := s.request
	r.Job, r.Followers, r.before = job, nil, &s.decided
	return r
}

// undo takes the trial reservations of all parts back.
func (s *assembly) undo(ctx context.Context) {
	for _, undo := range slices.Backward(s.undos) {
		undo(ctx)
	}
}

// why explains why the job cannot start, or grow: by the part that was refused first.
func (s *assembly) why() model.Reason {
	if s.first == nil {
		return model.Reason{Kind: model.NotEnoughResources, FromNodes: true, Message: "the pods of its subgroups that could be placed do not make up its minimum: create the missing ones"}
	}
	r := s.reason
	if s.first.Policy < 0 {
		return r
	}
	r.Message = fmt.Sprintf("subgroup %s: %s", s.first.Name, r.Message)
	if n := s.need.ofPolicy(s.first.Policy); n > 0 {
		least := s.request.Job.Group.SubGroups[s.first.Policy].Min
		r.Message = fmt.Sprintf("%d/%d subgroups schedulable; %s", least-n, least, r.Message)
	}
	return r
}

// planParts places the parts of a job. Where some have to place more than their sizes, and there is no room for that, their sizes are placed
// first, and then one task after the other.
func (p *Planner) planParts(ctx context.Context, r Request, g *ground) (Plan, error) {
	s := assemble(r, p.ByLabels())
	plan, err := p.planAssembly(ctx, s, g)
	if err != nil || len(plan.Placements) > 0 || !slices.ContainsFunc(s.extra, func(n int) bool { return n > 0 }) {
		return plan, err
	}
	s = assemble(r, p.ByLabels())
	clear(s.extra)
	s.one = true
	other, err := p.planAssembly(ctx, s, g)
	if err != nil || len(other.Placements) > 0 {
		return other, err
	}
	return plan, nil
}

// planAssembly places one part after the other until the job has what it needs. A part that finds no room is passed over: others may do.
func (p *Planner) planAssembly(ctx context.Context, s *assembly, g *ground) (Plan, error) {
	defer s.undo(ctx)
	for i := 0; i < len(s.parts) && !(s.need.step && s.need.met()); i++ {
		part := s.parts[i]
		job := s.next(i)
		if job == nil || s.likeRefused(part, job) {
			continue
		}
		plan, err := p.planPart(ctx, s.ask(job), g, s.domainsOf(p, part, job, g))
		if err != nil {
			return Plan{}, err
		}
		if len(plan.Placements) == 0 {
			s.refused(part, job, plan.Reason, plan.Doubts)
			continue
		}
		s.placed, s.fragile = append(s.placed, plan.Placements...), s.fragile || plan.Fragile
		s.take(part, tasksOfPlan(plan.Placements))
		if s.one {
			s.followUp(i, plan.Placements)
		}
	}
	if s.need.met() {
		return Plan{Placements: s.placed, Fragile: s.fragile}, nil
	}
	return Plan{Reason: s.why(), Doubts: s.doubts, fit: len(s.placed)}, nil
}

// followUp has a part asked for one task more, beside those that were placed, once all others have had their turn.
func (s *assembly) followUp(i int, placed []Placement) {
	if part := s.parts[i]; part.Policy >= 0 && s.need.tasks > 0 {
		if part = part.With(placements(placed)); asking(part) > 0 {
			s.parts, s.extra = append(s.parts, part), append(s.extra, 1)
		}
	}
}

func placements(placed []Placement) map[types.UID]string {
	nodes := make(map[types.UID]string, len(placed))
	for _, p := range placed {
		nodes[p.Task.UID] = p.Node
	}
	return nodes
}

func tasksOfPlan(placements []Placement) []*model.Task {
	tasks := make([]*model.Task, len(placements))
	for i := range placements {
		tasks[i] = placements[i].Task
	}
	return tasks
}

// domainsOf asks where a part may be. For parts that ask for the same, and hold nothing, the answer is the same.
func (s *assembly) domainsOf(p *Planner, part model.Part, job *model.Job, g *ground) choice {
	signature, ok := s.signature(part, job)
	if known, asked := s.domains[signature]; ok && asked {
		return known
	}
	var c choice
	if c.domains, c.refusal = p.domains(job, g.all); ok {
		s.domains[signature] = c
	}
	return c
}

// planPart places one part, inside of a domain of its own if it asks for one.
func (p *Planner) planPart(ctx context.Context, r Request, g *ground, c choice) (Plan, error) {
	switch {
	case c.refusal != "":
		return Plan{Reason: nowhere(c.refusal)}, nil
	case c.domains != nil:
		return p.planInside(ctx, r, g, roomyFirst(r, g, c.domains))
	}
	return p.planAmong(ctx, r, g.nodes)
}

// roomyFirst puts those of the domains last that have too few places for a part, by what is idle beside what was placed before: of these the
// one with the most places first, which tells best what is missing.
func roomyFirst(r Request, g *ground, domains []Domain) []Domain {
	taken := r.before.taken()
	need := r.Job.Requirement().Tasks
	places := make(map[string]int, len(domains))
	var roomy, short []Domain
	for _, d := range domains {
		if places[d.Name] = placesFor(r.Job, g.in(d), taken); places[d.Name] < need {
			d.Short = true
			short = append(short, d)
		} else {
			roomy = append(roomy, d)
		}
	}
	slices.SortStableFunc(short, func(a, b Domain) int { return cmp.Compare(places[b.Name], places[a.Name]) })
	return append(roomy, short...)
}

// placesFor is how many of a job's waiting tasks find room on some nodes at most.
func placesFor(job *model.Job, nodes []fwk.NodeInfo, taken map[string]resource.Vector) int {
	places := 0
	for _, d := range job.Pending {
		rooms := 0
		for _, info := range nodes {
			if rooms >= d.Count {
				break
			}
			rooms += roomBeside(info, d.Request, taken[info.Node().Name])
		}
		places += min(rooms, d.Count)
	}
	return places
}

// evictParts looks for evictions that make room for the parts of a job, one after the other, until it has what it needs.
func (p *Planner) evictParts(ctx context.Context, search Search, g *ground) (Statement, error) {
	s := assemble(search.Request, p.ByLabels())
	defer func() {
		s.undo(ctx)
		s.giveBack(search.Trial)
	}()
	st := Statement{Kept: map[string]int{}}
	for i, part := range s.parts {
		job := s.next(i)
		if job == nil || s.likeRefused(part, job) {
			continue
		}
		if kept := roomKept(job); len(kept) >= job.Requirement().Tasks {
			s.take(part, kept)
		} else {
			one, err := p.evictPart(ctx, s.searchFor(search, job), g, s.domainsOf(p, part, job, g))
			if err != nil {
				return Statement{}, err
			}
			for why, n := range one.Kept {
				// They are the same pods, part by part.
				st.Kept[why] = max(st.Kept[why], n)
			}
			if one.Placements == nil {
				s.refused(part, job, model.Reason{FromNodes: true, Message: one.Why}, Doubts{})
				continue
			}
			s.adopt(search.Trial, one)
			s.take(part, append(kept, tasksOfPlan(one.Placements)...))
		}
		if s.need.met() {
			break
		}
	}
	switch {
	case !s.need.met():
		st.Why = s.why().Message
	case len(s.placed) == 0:
		st.Why = roomForAll
	default:
		st.Placements, st.Victims = s.placed, s.victims
	}
	return st, nil
}

// roomKept are the tasks of a part for which room is kept.
func roomKept(job *model.Job) []*model.Task {
	var kept []*model.Task
	for _, t := range job.Tasks {
		if t.Nominated != "" {
			kept = append(kept, t)
		}
	}
	return kept
}

// evictPart looks for evictions that make room for one part.
func (p *Planner) evictPart(ctx context.Context, s Search, g *ground, c choice) (Statement, error) {
	switch {
	case c.refusal != "":
		return Statement{Why: c.refusal}, nil
	case c.domains != nil:
		return p.evictInside(ctx, s, g, c.domains)
	}
	return p.evictAmong(ctx, s, g.nodes)
}

// searchFor is the search for a part, for which those leave who were chosen for others.
func (s *assembly) searchFor(search Search, job *model.Job) Search {
	search.Request = s.ask(job)
	search.Leaving = slices.Clone(search.Leaving)
	for _, v := range s.victims {
		search.Leaving = append(search.Leaving, model.Leaving{UID: v.Task.UID, Node: v.Task.Node})
	}
	return search
}

// adopt counts what was found for a part in the trial of those that follow.
func (s *assembly) adopt(trial Trial, st Statement) {
	s.placed, s.victims = append(s.placed, st.Placements...), append(s.victims, st.Victims...)
	for _, v := range st.Victims {
		trial.Take(v)
	}
	for _, p := range st.Placements {
		trial.Gain(p.Task)
	}
}

// giveBack leaves the trial as it was.
func (s *assembly) giveBack(trial Trial) {
	for _, v := range s.victims {
		trial.Return(v)
	}
	for _, p := range s.placed {
		trial.Lose(p.Task)
	}
}
