// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command chaos does harm in the middle of gangs, again and again: it kills the real scheduler, stops the local control plane, has
// requests refused. It checks what becomes of the gangs: whoever is bound stays where it is, and every gang is soon whole or gives back what it
// holds.
//
//	go run ./test/chaos --troubles kill,restart --rounds 100
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
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
	// Troubles are what goes wrong, each for so many Rounds.
	Troubles []string `json:"troubles"`
	Rounds   int      `json:"rounds"`
	// Gangs of Size members of a core each are started in a round; in the k-th the trouble begins after the k-th bind.
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
	// keep has the logs of all schedulers stay, and not only those of the last ones.
	keep      bool
	verbosity int
}

func bind(flags *pflag.FlagSet, o *options) {
	flags.StringSliceVar(&o.Troubles, "troubles", []string{"kill"}, "what goes wrong, one after another; \"all\" is everything")
	flags.IntVar(&o.Rounds, "rounds", 100, "how often each goes wrong")
	flags.IntVar(&o.Gangs, "gangs", 3, "gangs that are started in a round")
	flags.IntVar(&o.Size, "size", 8, "members of a gang, one core each")
	flags.IntVar(&o.Rate, "rate", 100, "requests a second that the scheduler may send, so that something can go wrong between two binds")
	flags.IntVar(&o.Blocked, "blocked", 2, "in every n-th round of kill others take all room, so that half gangs cannot be completed; 0 is never")
	flags.DurationVar(&o.HalfTimeout, "half-timeout", 2*time.Second, "how long gangs may be half placed")
	flags.DurationVar(&o.Patience, "patience", 2*time.Minute, "how long gangs may take beyond that: clients wait for up to 30 s before they connect anew, and a gang that was released twice rests for a minute")
	flags.StringVar(&o.logs, "logs", "", "directory where the log of each scheduler is kept (default: those of the last ones, in a temporary directory)")
	flags.IntVarP(&o.verbosity, "verbosity", "v", 0, "verbosity of these logs")
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

// chosen are the troubles that the flags name.
func (o *options) chosen() ([]trouble, error) {
	known := troubles()
	if slices.Contains(o.Troubles, "all") {
		return known, nil
	}
	var chosen []trouble
	for _, name := range o.Troubles {
		i := slices.IndexFunc(known, func(t trouble) bool { return t.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--troubles has %q, which is unknown: see --help", name)
		}
		chosen = append(chosen, known[i])
	}
	if len(chosen) == 0 {
		return nil, errors.New("--troubles is empty: nothing would go wrong")
	}
	return chosen, nil
}

func newCommand() *cobra.Command {
	var o options
	long := &strings.Builder{}
	long.WriteString("Do harm in the middle of gangs, and check what becomes of them.\n\n" +
		"Each round starts gangs, and something goes wrong: after the first bind in the first round, after the second in the second, and so on.\n" +
		"In the end every gang must be whole. One that is half placed must be completed where its members are, or give back what it holds\n" +
		"within its time. The exit status is 1 if that did not hold in some round.\n\nTroubles:\n")
	for _, t := range troubles() {
		fmt.Fprintf(long, "  %-17s %s\n", t.name, t.what)
	}
	cmd := &cobra.Command{
		Use:          "chaos",
		Short:        "Do harm in the middle of gangs, and check what becomes of them",
		Long:         long.String(),
		Args:         cobra.NoArgs,
		SilenceUsage: true,
	}
	bind(cmd.Flags(), &o)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		chosen, err := o.chosen()
		if err := errors.Join(err, o.check()); err != nil {
			return err
		}
		klog.SetOutput(io.Discard) // client libraries tell of each write that meets another one
		klog.LogToStderr(false)
		results, err := run(cmd.Context(), o, chosen, cmd.ErrOrStderr())
		return errors.Join(err, report(cmd.OutOrStdout(), o, results))
	}
	return cmd
}

// result is what the rounds of a trouble came to.
type result struct {
	Trouble string  `json:"trouble"`
	Rounds  []round `json:"rounds"`
	Sum     sum     `json:"sum"`
}

// run builds the programs and does the rounds. Those done before an error are returned, too.
func run(ctx context.Context, o options, chosen []trouble, progress io.Writer) ([]result, error) {
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
	if o.keep = o.logs != ""; !o.keep {
		o.logs = dir
	} else if err := os.MkdirAll(o.logs, 0o755); err != nil {
		return nil, err
	}
	var results []result
	for _, t := range chosen {
		rounds, err := meet(ctx, o, t, binary, progress)
		results = append(results, result{Trouble: t.name, Rounds: rounds, Sum: add(rounds)})
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// meet does the rounds of one trouble.
func meet(ctx context.Context, o options, t trouble, binary string, progress io.Writer) (rounds []round, err error) {
	s, err := open(ctx, o, t, binary)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.play(ctx, progress)
}

// sum is what all rounds came to.
type sum struct {
	Rounds, Failed int
	// Halves is how many gangs were half placed when the trouble began, and Released how many of them gave back what they held.
	Halves, Released int
	// Longest is for how long a gang was half placed since then, and Held the core seconds that members of half gangs held.
	Longest time.Duration
	Held    float64
	// Others is how long at most gangs that the trouble is no affair of took until they were whole.
	Others time.Duration
	// Evicted is how many pods of others were evicted.
	Evicted int
}

// add sums rounds up.
func add(rounds []round) sum {
	var all sum
	for _, r := range rounds {
		all.Rounds++
		all.Halves += r.Halves
		all.Released += r.Released
		all.Longest = max(all.Longest, r.Longest)
		all.Held += r.Held
		all.Others = max(all.Others, r.Others)
		all.Evicted += r.Evicted
		if r.Failure != "" {
			all.Failed++
		}
	}
	return all
}

// report prints what the rounds came to, and fails if one did.
func report(out io.Writer, o options, results []result) error {
	rounds, failed := 0, 0
	for _, r := range results {
		rounds += r.Sum.Rounds
		failed += r.Sum.Failed
	}
	if o.out == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(map[string]any{"options": o, "results": results}); err != nil {
			return err
		}
	} else {
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(table, "trouble\trounds\tfailed\thalf gangs\treleased\tlongest s\tcore s held\tothers s\tevicted\t")
		for _, r := range results {
			all := r.Sum
			fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%.1f\t%.0f\t%.1f\t%d\t\n", r.Trouble, all.Rounds, all.Failed, all.Halves, all.Released,
				all.Longest.Seconds(), all.Held, all.Others.Seconds(), all.Evicted)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d rounds failed", failed, rounds)
	}
	return nil
}
