// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"slices"
	"sync"
	"testing"

	upstream "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/caldera-scheduler/caldera/internal/testing/reference"
	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/app"
)

// TestTheReferenceOfFlagsIsTrue compares docs/reference/scheduler-flags.md with the flags that upstream does not have; with -rewrite it writes it.
func TestTheReferenceOfFlagsIsTrue(t *testing.T) {
	p := reference.New("scheduler-flags.md", "Flags of the scheduler", "the flags in pkg/scheduler/app")
	p.Say("What `kube-scheduler` with Caldera takes besides all flags of kube-scheduler, which `kube-scheduler --help` lists. What they do together is in " +
		"[install.md](../install.md) and [visibility.md](../visibility.md#how-it-is-set-up).")
	own := own()
	if len(own) == 0 {
		t.Error("there are no flags that upstream does not have")
	}
	p.Flags(own)
	p.Check(t, "../../..")
}

// own are the flags that upstream does not have. A process can make one such command only: the second one finds that feature gates have flags.
var own = sync.OnceValue(func() []reference.Flag {
	ours := reference.Flags(app.New(plugins.Extensions{}).Flags())
	theirs := upstream.NewSchedulerCommand().Flags()
	return slices.DeleteFunc(ours, func(f reference.Flag) bool { return theirs.Lookup(f.Name) != nil })
})
