// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"math/bits"

	"github.com/caldera-scheduler/caldera/pkg/queue/account"
)

// ranking knows which of all lines is first without comparing all of them each time. It is a tournament: each line stands at the place of its queue,
// those of a queue and of the queues below it side by side, and the first of two neighbours goes on to the next round. When something changes, only
// those matches are played again that may end otherwise.
//
// Two queues are compared by their accounts and those above them up to where their ways part. So an account that shifted matters in all matches of its
// queue's own lines, and in those between a line below that and one that is not. A line that comes or goes matters in all its matches.
//
// All methods are called with the dispatcher's lock held.
type ranking struct {
	// won is who won each match, nil where nobody has a turn: that of the matches 2i and 2i+1 in the match i, so that won[1] is the first of all. The
	// second half of it are the lines at their places.
	won []*line
	// seen is the accounts' count of shifts that are taken in.
	seen uint64
	// touched are the lines whose lots have changed since then.
	touched []*line
	// retrying is the backlog's, as of when the lines were last looked at.
	retrying bool
}

// touch takes in that a lot of a line may have turns, or may not any more.
func (r *ranking) touch(l *line) {
	if !l.touched {
		l.touched = true
		r.touched = append(r.touched, l)
	}
}

// first is the first of all lines in which a lot may have a turn, as of when it was last settled; nil when there is none.
func (r *ranking) first() *line { return r.won[1] }

// settle takes in all that happened, and reports whether that can be told: not of a line whose queue has no place.
func (r *ranking) settle(b *backlog) bool {
	if r.retrying != b.retrying {
		r.retrying = b.retrying
		for _, l := range b.active {
			if l.retries.Len() > 0 {
				r.touch(l)
			}
		}
	}
	shifted, seen, all := b.policies.Book().Shifted(r.seen)
	r.seen = seen
	places := len(r.won) / 2
	// An account that shifted has two ways up to the final to be played again.
	told := true
	if rounds := bits.Len(uint(places)); all || 2*rounds*(len(shifted)+len(r.touched)) > places {
		told = r.anew(b)
	} else {
		for _, l := range r.touched {
			told = r.look(b, l) && told
		}
		for _, q := range shifted {
			r.replay(b, q)
		}
	}
	for _, l := range r.touched {
		l.touched = false
	}
	r.touched = r.touched[:0]
	if !told {
		r.seen = 0
	}
	return told
}

// anew plays all matches.
func (r *ranking) anew(b *backlog) bool {
	queues := len(b.policies.Book().Queues())
	// Each queue has a place for its line and one for that of its guests.
	places := 2 << bits.Len(uint(queues))
	if len(r.won) != 2*places {
		r.won = make([]*line, 2*places)
	}
	clear(r.won)
	for _, l := range b.active {
		at, known := l.place()
		if !known {
			return false
		}
		if b.first(l) != nil {
			r.won[places+at] = l
		}
	}
	for match := places - 1; match > 0; match-- {
		r.play(b, match)
	}
	return true
}

// look takes in whether a lot of a line may have a turn now.
func (r *ranking) look(b *backlog, l *line) bool {
	at, known := l.place()
	if !known {
		return l.at < 0
	}
	var now *line
	if l.at >= 0 && b.first(l) != nil {
		now = l
	}
	if match := len(r.won)/2 + at; r.won[match] != now {
		for r.won[match], match = now, match/2; match > 0; match /= 2 {
			r.play(b, match)
		}
	}
	return true
}

// replay plays the matches again that may end otherwise since the account of a queue shifted.
func (r *ranking) replay(b *backlog, q *account.Queue) {
	places := len(r.won) / 2
	first, end := q.Span()
	for match := (places + 2*first) / 2; match > 0; match /= 2 {
		r.play(b, match)
	}
	if end-first == 1 {
		return
	}
	for round, match := 1, (places+2*end-1)/2; match > 0; round, match = round+1, match/2 {
		if from := match<<round - places; from < 2*first || from+1<<round > 2*end {
			r.play(b, match)
		}
	}
}

// play has the first of two neighbours win a match.
func (r *ranking) play(b *backlog, match int) {
	x, y := r.won[2*match], r.won[2*match+1]
	if x == nil || y != nil && b.compareLines(y, x) < 0 {
		x = y
	}
	r.won[match] = x
}

// place is where the line stands in a ranking; false if its queue has no place.
func (l *line) place() (at int, known bool) {
	if l.account == nil {
		return 0, false
	}
	first, end := l.account.Span()
	if at = 2 * first; l.guest {
		at++
	}
	return at, end > 0
}
