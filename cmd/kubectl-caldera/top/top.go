// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package top is the command "kubectl caldera top".
package top

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/queues"
)

// What can be shown.
const (
	ofQueues = "queues"
	ofNodes  = "nodes"
)

type flags struct {
	*leader.Flags
	resource string
	watch    leader.Watch
}

// New returns the command.
func New() *cobra.Command {
	f := flags{Flags: leader.NewFlags()}
	cmd := &cobra.Command{
		Use:   "top [queues|nodes]",
		Short: "Watch what queues hold and what is free on nodes",
		Long: `Watch what queues hold and what is free on nodes. On a terminal it is shown again every two seconds, until it is interrupted; elsewhere once.

Of queues: what each holds, is due and may hold of one resource, as a bar, and how many jobs wait.
Of nodes: the devices that are free on each, the fullest node first, and how many more pods of 1, 2, 4 and 8 devices would find room, as the metric
caldera_slots counts them. This takes the right to list nodes and pods of the whole cluster.`,
		Example: `  kubectl caldera top
  kubectl caldera top queues --resource cpu
  kubectl caldera top nodes`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{ofQueues, ofNodes},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.With(cmd, func(ctx context.Context, client *leader.Client) error { return f.show(ctx, client, args) })
		},
	}
	f.Add(cmd, false)
	cmd.Flags().StringVar(&f.resource, "resource", "", "The resource of queues, or of devices on nodes, that is shown, like cpu or nvidia.com/gpu.")
	f.watch.AddLive(cmd)
	return cmd
}

func (f *flags) show(ctx context.Context, client *leader.Client, args []string) error {
	var nodes *nodes
	var refused error
	if len(args) == 0 || args[0] == ofNodes {
		nodes, refused = f.follow(ctx, client)
		if refused != nil && len(args) == 1 {
			return refused
		}
	}
	return f.watch.Repeat(ctx, client.Streams.Out, func(out io.Writer) error {
		width, height := leader.Screen(client.Streams.Out)
		var page bytes.Buffer
		if !slices.Contains(args, ofNodes) {
			if err := queues.WriteBars(ctx, f.Flags, client, &page, f.resource, barWidth(width)); err != nil {
				return err
			}
		}
		if len(args) == 0 {
			fmt.Fprintln(&page)
		}
		switch {
		case refused != nil:
			fmt.Fprintf(&page, "Nodes are not shown: %v\n", refused)
		case nodes != nil:
			if err := write(&page, nodes.devices(), f.resource, barWidth(width)); err != nil {
				return err
			}
		}
		_, err := io.WriteString(out, clip(page.String(), width, height))
		return err
	})
}

// barWidth is how many characters a bar has: a third of the terminal.
func barWidth(screen int) int {
	if screen == 0 {
		return 24
	}
	return min(max(8, screen/3), 48)
}

// clip cuts a text so that it fits on a screen. It says so where lines are left out. Zero: there is no screen.
func clip(text string, width, height int) string {
	if width == 0 {
		return text
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	// The last line of a screen is where the cursor stands.
	if room := max(2, height-1); len(lines) > room {
		left := len(lines) - room + 1
		lines = append(lines[:room-1:room-1], fmt.Sprintf("and %s more", leader.Count(left, "line", "lines")))
	}
	for i, line := range lines {
		if runes := []rune(line); len(runes) > width {
			lines[i] = string(runes[:width])
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
