// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command chaos kills the real scheduler in the middle of gangs, again and again, on the local control plane, and checks what becomes of
// them: whoever is bound stays where it is, and every gang is soon whole or gives back what it holds.
//
//	go run ./test/chaos --rounds 100
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// options are what is done how often.
type options struct {
	Rounds int `json:"rounds"`
	// Gangs of Size members of a core each are started in a round; in the k-th the scheduler is killed after the k-th bind.
	Gangs int `json:"gangs"`
	Size  int `json:"size"`
	// Rate is how many requests a second the scheduler may send: one that binds slowly can be killed in between.
	Rate int `json:"rate"`
	// Blocked is after how many rounds there is one in which half gangs find no room to be completed.
	Blocked int `json:"blocked"`
	// HalfTimeout is the scheduler's argument; Patience is how long gangs may take beyond it.
	HalfTimeout time.Duration `json:"halfTimeout"`
	Patience    time.Duration `json:"patience"`

	logs, out string
}

func bind(flags *pflag.FlagSet, o *options) {
	flags.IntVar(&o.Rounds, "rounds", 100, "how often the scheduler is killed")
	flags.IntVar(&o.Gangs, "gangs", 3, "gangs that are started in a round")
	flags.IntVar(&o.Size, "size", 8, "members of a gang, one core each")
	flags.IntVar(&o.Rate, "rate", 100, "requests a second that the scheduler may send, so that it can be killed between two binds")
	flags.IntVar(&o.Blocked, "blocked", 2, "in every n-th round others take all room, so that half gangs cannot be completed; 0 is never")
	flags.DurationVar(&o.HalfTimeout, "half-timeout", 2*time.Second, "how long gangs may be half placed")
	flags.DurationVar(&o.Patience, "patience", 30*time.Second, "how long gangs may take beyond that")
	flags.StringVar(&o.logs, "logs", "", "directory for the schedulers' logs (default: a temporary one)")
	flags.StringVarP(&o.out, "output", "o", "text", "what is printed: text or json")
}

// check complains about flags that make no sense.
func (o *options) check() error {
	switch {
	case o.Rounds < 1, o.Gangs < 1:
		return fmt.Errorf("--rounds is %d and --gangs %d: both must be at least 1", o.Rounds, o.Gangs)
	case o.Size < 2:
		return fmt.Errorf("--size is %d: a gang of fewer than 2 is never half placed", o.Size)
	case o.Rate < 1:
		return fmt.Errorf("--rate is %d: it must be at least 1", o.Rate)
	case o.Blocked < 0:
		return fmt.Errorf("--blocked is %d: it must be at least 0", o.Blocked)
	case o.HalfTimeout < time.Second:
		return fmt.Errorf("--half-timeout is %s: it must be at least 1s", o.HalfTimeout)
	case o.out != "text" && o.out != "json":
		return fmt.Errorf("--output is %q: use text or json", o.out)
	}
	return nil
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "chaos",
		Short: "Kill the scheduler between the binds of gangs, and check what becomes of them",
		Long: "Kill the scheduler between the binds of gangs, and check what becomes of them.\n\n" +
			"Each round starts gangs and kills the scheduler after the first bind, the second, and so on. When it runs again, every gang that is\n" +
			"half placed must be completed where its members are; in rounds in which others have taken all room meanwhile, it must give back what\n" +
			"it holds within its time, and start once there is room. The exit status is 1 if that did not hold in some round.",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
	}
	bind(cmd.Flags(), &o)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		klog.SetOutput(io.Discard) // client libraries tell of each write that meets another one
		klog.LogToStderr(false)
		rounds, err := run(cmd.Context(), o, cmd.ErrOrStderr())
		return errors.Join(err, report(cmd.OutOrStdout(), o, rounds))
	}
	return cmd
}

// run builds the programs and does the rounds. Those done before an error are returned, too.
func run(ctx context.Context, o options, progress io.Writer) ([]round, error) {
	fmt.Fprintln(progress, "building localcluster and the scheduler (a first build takes minutes)")
	if _, err := localcluster.Build(ctx); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "chaos")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover directory does no harm
	binary, err := schedulerprocess.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	if o.logs == "" {
		o.logs = dir
	} else if err := os.MkdirAll(o.logs, 0o755); err != nil {
		return nil, err
	}
	return kill(ctx, o, binary, progress)
}

// sum is what all rounds came to.
type sum struct {
	Rounds, Failed int
	// Halves is how many gangs were half placed when the scheduler was dead, and Released how many of them gave back what they held.
	Halves, Released int
	// Longest is for how long a gang was half placed, from when the scheduler was killed, and Held the core seconds that members of half
	// gangs held since then.
	Longest time.Duration
	Held    float64
}

// report prints what the rounds came to, and fails if one did.
func report(out io.Writer, o options, rounds []round) error {
	var all sum
	for _, r := range rounds {
		all.Rounds++
		all.Halves += r.Halves
		all.Released += r.Released
		all.Longest = max(all.Longest, r.Longest)
		all.Held += r.Held
		if r.Failure != "" {
			all.Failed++
		}
	}
	if o.out == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(map[string]any{"options": o, "rounds": rounds, "sum": all}); err != nil {
			return err
		}
	} else {
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(table, "kills\tfailed\thalf gangs\treleased\tlongest s\tcore s held\t")
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%.1f\t%.0f\t\n", all.Rounds, all.Failed, all.Halves, all.Released, all.Longest.Seconds(), all.Held)
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if all.Failed > 0 {
		return fmt.Errorf("%d of %d rounds failed", all.Failed, all.Rounds)
	}
	return nil
}
