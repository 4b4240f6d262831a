// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command upgrade has two versions of the scheduler take the lead from each other, again and again, while gangs come and go on the local
// control plane. The earlier version is built from git. Halfway the definitions and rights of the new version take the place of those of the
// earlier one. It judges by what the API server tells, and fails if a promise was broken.
//
//	go run ./test/upgrade --switches 20 --from v0.1.0
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
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
	// Switches is how often the leader changes, and Ways how it is made to, in turn.
	Switches int      `json:"switches"`
	Ways     []string `json:"ways"`
	// From is the version that is upgraded from.
	From string `json:"from"`
	// Nodes is how many there are, of nodeCores cores each.
	Nodes int `json:"nodes"`
	// Lease is how long a leader that says nothing is waited for.
	Lease time.Duration `json:"lease"`
	// Between is how long a leader leads at least.
	Between time.Duration `json:"between"`
	// Rate is how many requests a second the scheduler may send: one that binds slowly can be made to end in between.
	Rate int    `json:"rate"`
	Seed uint64 `json:"seed"`

	logs, out string
	verbosity int
}

const (
	// takeover is how long beyond the lease it may take until turns go on.
	takeover = 2 * time.Second
	// patience is how long anything may take that has no limit of its own.
	patience = 2 * time.Minute
)

func bind(flags *pflag.FlagSet, o *options) {
	flags.IntVar(&o.Switches, "switches", 20, "how often the leader changes, from the earlier version to the new one and back")
	flags.StringSliceVar(&o.Ways, "ways", wayNames(), "how the leader is made to end, in turn")
	flags.StringVar(&o.From, "from", "", "commit, branch or tag that is upgraded from (default: the last release; while there is none, "+beforeReleases+")")
	flags.IntVar(&o.Nodes, "nodes", 16, fmt.Sprintf("nodes of %d cores", nodeCores))
	flags.DurationVar(&o.Lease, "lease", 5*time.Second, "lease of the leader, in whole seconds")
	flags.DurationVar(&o.Between, "between", 2*time.Second, "how long each leader leads before it may be made to end")
	flags.IntVar(&o.Rate, "rate", 200, "requests a second that a scheduler may send, so that its lead can end between two binds")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the gangs; latencies are not the same from run to run")
	flags.StringVar(&o.logs, "logs", "", "directory where the log of each scheduler is kept (default: a temporary one)")
	flags.IntVarP(&o.verbosity, "verbosity", "v", 2, "verbosity of these logs")
	flags.StringVarP(&o.out, "output", "o", "text", "what is printed: text or json")
}

// check complains about flags that make no sense.
func (o *options) check() error {
	switch {
	case o.Switches < 1:
		return fmt.Errorf("--switches is %d: it must be at least 1", o.Switches)
	case o.Nodes < 8:
		return fmt.Errorf("--nodes is %d: gangs of several sizes need at least 8", o.Nodes)
	case o.Lease < 2*time.Second || o.Lease%time.Second != 0:
		return fmt.Errorf("--lease is %s: it must be whole seconds, at least 2s", o.Lease)
	case o.Rate < 1:
		return fmt.Errorf("--rate is %d: it must be at least 1", o.Rate)
	case o.Between < 0:
		return fmt.Errorf("--between is %s: it must be at least 0s", o.Between)
	case o.out != "text" && o.out != "json":
		return fmt.Errorf("--output is %q: use text or json", o.out)
	}
	_, err := o.chosen()
	return err
}

func newCommand() *cobra.Command {
	var o options
	long := &strings.Builder{}
	long.WriteString("Have two versions of the scheduler take the lead from each other while gangs come and go, and judge what becomes of the gangs.\n\n" +
		"Each version runs with the arguments, the configuration and the volcano-scheduler.conf of its own manifests, and with the rights of the\n" +
		"shipped service account: in the first half of the switches those of the earlier version, then those of the new one. The definitions of\n" +
		"PodGroups and queues are replaced with the rights. The exit status is 1 if a promise was broken.\n\nWays:\n")
	for _, w := range ways() {
		fmt.Fprintf(long, "  %-7s %s\n", w.name, w.what)
	}
	cmd := &cobra.Command{
		Use:          "upgrade",
		Short:        "Have two versions of the scheduler take the lead from each other, and judge what becomes of gangs",
		Long:         long.String(),
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
		r, err := run(cmd.Context(), o, cmd.ErrOrStderr())
		if r == nil {
			return err
		}
		return errors.Join(err, r.print(cmd.OutOrStdout(), o))
	}
	return cmd
}

// run builds both versions and switches between them. What was seen before an error is returned, too.
func run(ctx context.Context, o options, progress io.Writer) (*result, error) {
	fmt.Fprintln(progress, "building both versions (a first build takes minutes)")
	begun := time.Now()
	old, err := earlier(ctx, o.From)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "%s is there after %.1f s\n", old.name, time.Since(begun).Seconds())
	dir, err := os.MkdirTemp("", "upgrade")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover directory does no harm
	current, err := present(ctx, dir)
	if err != nil {
		return nil, err
	}
	if o.logs == "" {
		o.logs = dir
	} else if err := os.MkdirAll(o.logs, 0o755); err != nil {
		return nil, err
	}
	return play(ctx, o, [2]*version{old, current}, progress)
}

// play opens a stage and switches on it.
func play(ctx context.Context, o options, versions [2]*version, progress io.Writer) (r *result, err error) {
	s, err := open(ctx, o, versions)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.play(ctx, progress)
}
