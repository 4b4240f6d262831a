// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command faults lets the scheduler live through thousands of small clusters in which requests fail, news comes late, nodes and objects go
// and the process dies, and checks what has to hold all the same. Time is simulated: half an hour of a cluster takes a fraction of a second.
//
//	go run ./test/faults --seeds 1000
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// repeat is of how many scenarios one is played twice, unless told otherwise.
const repeat = 50

// options are which scenarios are played.
type options struct {
	Seeds, First int
	// Parallel is how many are played at a time, each by a process of its own.
	Parallel int
	// Repeat is of how many scenarios one is played twice, to see whether it comes out the same.
	Repeat int
	// replay is a scenario to be played instead, dir where those that fail are written.
	replay, dir string
	verbose     bool
	out         string
}

func bind(flags *pflag.FlagSet, o *options) {
	flags.IntVar(&o.Seeds, "seeds", 1000, "how many scenarios are drawn and played")
	flags.IntVar(&o.First, "first", 1, "the seed of the first; the others follow it")
	flags.IntVar(&o.Parallel, "parallel", runtime.NumCPU(), "how many are played at a time")
	flags.IntVar(&o.Repeat, "repeat", repeat, "of how many scenarios one is played twice, to see whether it comes out the same")
	flags.StringVar(&o.replay, "replay", "", "file with a scenario that is played instead")
	flags.StringVar(&o.dir, "dir", "_output/faults", "directory for the scenarios that fail, and what is left of them once what does not matter is left out")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "with one scenario: what happens, and the scheduler's log, go to standard error")
	flags.StringVarP(&o.out, "output", "o", "text", "what is printed: text or json")
}

// check complains about flags that make no sense.
func (o *options) check() error {
	switch {
	case o.Seeds < 1, o.First < 0, o.Parallel < 1, o.Repeat < 1:
		return fmt.Errorf("--seeds is %d, --first %d, --parallel %d and --repeat %d: the second must be at least 0, the others 1", o.Seeds, o.First, o.Parallel, o.Repeat)
	case o.verbose && o.replay == "" && o.Seeds > 1:
		return errors.New("--verbose goes with --replay FILE, or --seeds 1")
	case o.out != "text" && o.out != "json":
		return fmt.Errorf("--output is %q: use text or json", o.out)
	}
	return nil
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "faults",
		Short: "Let the scheduler live through clusters in which everything goes wrong",
		Long: "Let the scheduler live through clusters in which everything goes wrong.\n\n" +
			"Each seed is a cluster of a few nodes and jobs. For three minutes requests fail, watches break, nodes and objects go and the scheduler\n" +
			"dies, as the seed says. Then nothing fails any more, and what can run has to run. Time is simulated. A scenario that fails is cut\n" +
			"down to what it takes and written to a file; --replay plays it again. The exit status is 1 if one failed.",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
	}
	bind(cmd.Flags(), &o)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		progress := cmd.ErrOrStderr()
		fmt.Fprintln(progress, "building the test program (a first build takes minutes)")
		program, remove, err := build(cmd.Context())
		if err != nil {
			return err
		}
		defer remove()
		if o.replay != "" {
			return again(cmd.Context(), program, o, cmd.OutOrStdout(), progress)
		}
		found, err := run(cmd.Context(), program, o, progress)
		return errors.Join(err, found.report(cmd.OutOrStdout(), o))
	}
	return cmd
}

// again plays a scenario of a file.
func again(ctx context.Context, program string, o options, out, progress io.Writer) error {
	data, err := os.ReadFile(o.replay)
	if err != nil {
		return err
	}
	s := &scenario{}
	if err := json.Unmarshal(data, s); err != nil {
		return fmt.Errorf("reading %s: %w", o.replay, err)
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("reading %s: %w", o.replay, err)
	}
	p := newPlayer(program, o, progress)
	defer p.close()
	played := p.play(ctx, s)
	if err := encode(out, played); err != nil {
		return err
	}
	if played.Failure != "" {
		return fmt.Errorf("the scenario fails: %s", played.Failure)
	}
	return nil
}

func encode(out io.Writer, what any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(what)
}

// save writes a scenario to a file, and returns its name.
func save(dir, name string, s *scenario) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, name)
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", err
	}
	return file, os.WriteFile(file, append(data, '\n'), 0o600)
}
