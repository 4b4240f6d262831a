// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/replay/history"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
)

// queues is the resource of queues.
var queues = volcano.SchemeGroupVersion.WithResource("queues")

// Restarted is a replay whose scheduler was killed now and then.
type Restarted struct {
	*history.History
	// Bounds are by when jobs, by their number, were first told that they start, as far as that was written.
	Bounds map[int]time.Duration
	// Kills is how often the scheduler was killed while room was reserved.
	Kills int
}

// PlayRestarted plays a trace by a scheduler that is killed now and then, and is started anew on what it has written until then.
func PlayRestarted(ctx context.Context, t *trace.Trace, o Options, random *rand.Rand) (*Restarted, error) {
	o.Tick = DefaultTick
	p, err := newPlayer(ctx, t, o)
	if err != nil {
		return nil, err
	}
	w := &killed{scheduled: p.world.(*scheduled), killer: newKiller(random)}
	p.world = w
	defer w.stop()
	if err := p.play(); err != nil {
		return nil, err
	}
	r := &Restarted{History: p.recorder.Done(), Bounds: map[int]time.Duration{}, Kills: w.killer.kills}
	for job, n := range w.killer.notes {
		if !n.First.IsZero() {
			r.Bounds[job] = n.First.Sub(o.Now)
		}
	}
	return r, nil
}

// killed is a world whose scheduler is killed now and then.
type killed struct {
	*scheduled
	killer *killer
}

func (w *killed) decide(now time.Duration) (whole, evicted []*actor, err error) {
	whole, evicted, err = w.scheduled.decide(now)
	if err == nil {
		err = w.killer.strike(w.scheduled)
	}
	return whole, evicted, err
}

// killer kills schedulers.
type killer struct {
	random *rand.Rand
	// notes are the first that were written of what is reserved for a job, by the job's number.
	notes map[int]*note
	kills int
}

// note is what was written of reserved room, and the jobs that were in the way then.
type note struct {
	*model.Reservation
	inTheWay []*actor
}

func newKiller(random *rand.Rand) *killer { return &killer{random: random, notes: map[int]*note{}} }

// strike has the scheduler write what it has to, or not, and kills it, or not.
func (k *killer) strike(w *scheduled) error {
	if k.random.IntN(2) == 0 {
		if _, err := w.box.Flush(); err != nil {
			return err
		}
		w.box.Core.Writer.FlushQueues(context.Background())
		if err := w.box.Deliver(); err != nil {
			return err
		}
	}
	held := false
	for _, o := range w.box.API.Objects(queues) {
		n, err := model.ReservationOf(o.(*volcano.Queue).Annotations)
		if err != nil {
			return err
		}
		if n != nil {
			held = true
			k.take(w, n)
		}
	}
	if k.random.IntN(4) > 0 {
		return nil
	}
	if held {
		k.kills++
	}
	return w.box.Restart()
}

// take notes what was written, if nothing was before.
func (k *killer) take(w *scheduled, r *model.Reservation) {
	n := &note{Reservation: r}
	for _, uid := range r.InTheWay {
		if a := w.actors[uid]; a != nil {
			n.inTheWay = append(n.inTheWay, a)
		}
	}
	for _, a := range w.actors {
		if strings.HasSuffix(r.Job, "/"+a.name()) && k.notes[a.job] == nil {
			k.notes[a.job] = n
		}
	}
}
