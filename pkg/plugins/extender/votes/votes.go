// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package votes has an extender vote on queues and jobs. Where the scheduler must not wait, the vote is what the extender
// answered last, if that was just now; otherwise it is asked in the background, and the scheduler asks again afterwards.
package votes

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/client"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/protocol"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

const (
	// hold is how long an answer stands, and after how long an extender that rejected is asked again: Volcano asks in
	// every session, one a second.
	hold = time.Second
	// forget is after how long an answer that nobody wants is dropped.
	forget = time.Minute
	// inFlight bounds the questions that are asked at a time in the background; Volcano has as many workers for nodes.
	inFlight = 16
)

// Config is what a Voter works with. All fields are required.
type Config struct {
	Args arguments.Extender
	// Job returns a job with its tasks as it is now; nil when it is gone.
	Job func(model.JobKey) *model.Job
	// Session returns what the extender is told when a session opens.
	Session func() (protocol.Session, error)
	// Changed is called when it is worth asking the Voter again.
	Changed func()
	Clock   clock.WithTicker
}

// Voter is the policy of the plugin extender. It is safe for concurrent use.
type Voter struct {
	cfg    Config
	client *client.Client
	slots  chan struct{}
	// background is the context of questions that nobody waits for.
	background context.Context

	// mu guards what follows; it is never held while calling out.
	mu      sync.Mutex
	answers map[any]*answer
	// inquiries is how many questions are on their way, or answered and not made known; the first session is one.
	inquiries int
	// again is when somebody who was rejected is to ask again, zero for never; swept when answers were dropped last.
	again, swept time.Time
	// shut says why everything is refused; the zero Reason when it is not.
	shut model.Reason
}

// answer is what the extender said to a question.
type answer struct {
	// version is that of the object of the question, vote and reason the answer, at when it came; zero: none yet.
	version any
	vote    policy.Vote
	reason  model.Reason
	at      time.Time
	// wanted is when somebody last wanted it; asking: the question is on its way.
	wanted time.Time
	asking bool
}

var (
	_ policy.Admitter          = &Voter{}
	_ policy.Withholder        = &Voter{}
	_ policy.AdmissionObserver = &Voter{}
	_ policy.Ungroupable       = &Voter{}
	_ policy.Chooser           = &Voter{}
	_ policy.Repoller          = &Voter{}
)

// New returns a voter that asks until the context ends.
func New(ctx context.Context, cfg Config) *Voter {
	v := &Voter{
		cfg: cfg, client: client.New(&cfg.Args.Args),
		slots: make(chan struct{}, inFlight), background: ctx, answers: map[any]*answer{},
	}
	if cfg.Args.OnSessionOpenVerb != "" && !cfg.Args.Args.Ignorable {
		v.shut = withheld("the session of the extender at %s is not open yet", v.client.URL(cfg.Args.OnSessionOpenVerb))
		// Not the same reason as a failure, which is news.
		v.shut.Subject = "opening"
		v.inquiries++
	}
	return v
}

// Run keeps the sessions of the extender until the context ends.
func (v *Voter) Run(ctx context.Context) {
	if v.cfg.Args.OnSessionOpenVerb+v.cfg.Args.OnSessionCloseVerb != "" {
		v.sessions(ctx)
	}
}

// Again is when somebody who was rejected is to ask again; zero: never.
func (v *Voter) Again() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.again
}

// Asked says that all who were rejected ask again.
func (v *Voter) Asked() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.again = time.Time{}
}

// answerTo is what was answered to a question so far. What nobody has wanted for a while is dropped.
func (v *Voter) answerTo(key any, now time.Time) *answer {
	if now.Sub(v.swept) >= forget {
		v.swept = now
		maps.DeleteFunc(v.answers, func(_ any, a *answer) bool { return !a.asking && now.Sub(a.wanted) >= forget })
	}
	a := v.answers[key]
	if a == nil {
		a = &answer{}
		v.answers[key] = a
	}
	a.wanted = now
	return a
}

// vote is what the extender says to a question on a version of an object. An answer that permits stands for a while. One
// that rejects stands until there is another, so that reasons do not come and go; it is asked for again all the same.
func (v *Voter) vote(key, version any, ask func(context.Context) (policy.Vote, model.Reason)) (policy.Vote, model.Reason) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shut != (model.Reason{}) {
		return policy.Reject, v.shut
	}
	now := v.cfg.Clock.Now()
	a := v.answerTo(key, now)
	fits := !a.at.IsZero() && a.version == version
	fresh := fits && now.Sub(a.at) < hold
	if !fresh && !a.asking {
		a.asking = true
		v.inquiries++
		go v.inquire(a, version, ask)
	}
	if again := a.at.Add(hold); fresh && a.vote == policy.Reject && (v.again.IsZero() || again.Before(v.again)) {
		v.again = again
	}
	if fresh || fits && a.vote == policy.Reject {
		return a.vote, a.reason
	}
	return policy.Reject, model.Reason{Kind: model.Unanswered}
}

// inquire asks, and has the scheduler ask again.
func (v *Voter) inquire(a *answer, version any, ask func(context.Context) (policy.Vote, model.Reason)) {
	if !v.enter() {
		return
	}
	vote, reason := ask(v.background)
	v.leave()
	v.mu.Lock()
	a.version, a.vote, a.reason, a.at, a.asking = version, vote, reason, v.cfg.Clock.Now(), false
	v.mu.Unlock()
	v.cfg.Changed()
	v.mu.Lock()
	v.inquiries--
	v.mu.Unlock()
}

// enter waits until a question may be asked in the background; it fails when the scheduler ends.
func (v *Voter) enter() bool {
	select {
	case <-v.background.Done():
		return false
	case v.slots <- struct{}{}:
		return true
	}
}

func (v *Voter) leave() { <-v.slots }

// Asking reports whether the extender is being asked in the background.
func (v *Voter) Asking() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.inquiries > 0
}

// count counts n more questions as on their way.
func (v *Voter) count(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.inquiries += n
}

// failed is what a failure comes to: no opinion where the extender may fail.
func (v *Voter) failed(ctx context.Context, err error) (policy.Vote, model.Reason) {
	if v.cfg.Args.Args.Ignorable {
		klog.FromContext(ctx).V(3).Info("Extender failed and is ignored", "err", err)
		return policy.Abstain, model.Reason{}
	}
	return policy.Reject, withheld("%v", err)
}

// withheld is the reason of a refusal.
func withheld(format string, args ...any) model.Reason {
	return model.Reason{Kind: model.Withheld, Subject: "extender", Message: fmt.Sprintf(format, args...)}
}
