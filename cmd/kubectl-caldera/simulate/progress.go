// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/caldera-scheduler/caldera/pkg/simulate"
)

// eraseLine returns the cursor to the beginning of the line and erases it.
const eraseLine = "\r\x1b[K"

// progress says on a terminal how far a simulation has come. Elsewhere it says nothing.
type progress struct {
	out   io.Writer
	drawn bool
	bound int
}

func newProgress(out io.Writer) *progress {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		out = nil
	}
	return &progress{out: out}
}

// show is told of each round.
func (p *progress) show(r simulate.Round) {
	p.bound += r.Bound
	if p.out != nil {
		fmt.Fprintf(p.out, "%sround %d: %d pods bound so far", eraseLine, r.Number, p.bound)
		p.drawn = true
	}
}

// clear takes the line away.
func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.out, eraseLine)
		p.drawn = false
	}
}
