// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/caldera-scheduler/caldera/internal/testing/reference"
)

// TestTheReferenceOfCommandsIsTrue compares docs/reference/kubectl-caldera.md with the commands; with -rewrite it writes it.
func TestTheReferenceOfCommandsIsTrue(t *testing.T) {
	r := newCommandReference()
	root := newCommand()
	for _, c := range root.Commands() {
		r.add(c, 2)
	}
	r.page.Section(2, "Flags of kubectl")
	r.page.Say("Commands that ask a cluster take them.")
	r.page.Flags(slices.DeleteFunc(reference.Flags(r.cluster), func(f reference.Flag) bool { return !r.seen[f.Name] }))
	r.page.Section(2, "Flags of formats")
	r.page.Say("Commands with `--output` take them.")
	r.page.Flags(slices.DeleteFunc(reference.Flags(r.formats), func(f reference.Flag) bool { return !r.seen[f.Name] }))
	r.page.Check(t, "../..")
}

// commandReference makes the page.
type commandReference struct {
	page *reference.Page
	// cluster and formats are kubectl's own flags, which are told of once.
	cluster, formats *pflag.FlagSet
	// seen are those of them that a command has.
	seen map[string]bool
}

func newCommandReference() *commandReference {
	r := &commandReference{
		page:    reference.New("kubectl-caldera.md", "kubectl caldera", "the commands in cmd/kubectl-caldera"),
		cluster: pflag.NewFlagSet("", pflag.ContinueOnError), seen: map[string]bool{},
	}
	r.page.Say("All commands with their flags, as `--help` tells them. What they show is in [visibility.md](../visibility.md).")
	genericclioptions.NewConfigFlags(true).AddFlags(r.cluster)
	formats := &cobra.Command{}
	genericclioptions.NewPrintFlags("").AddFlags(formats)
	r.formats = formats.Flags()
	return r
}

// add tells of a command and of those below it.
func (r *commandReference) add(c *cobra.Command, level int) {
	if c.Name() == "help" || c.Name() == "completion" || c.Hidden {
		return
	}
	r.page.Section(level, strings.TrimPrefix(c.CommandPath(), "kubectl caldera "))
	text := c.Long
	if text == "" {
		text = c.Short
	}
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		r.page.Say(reference.Sentence(paragraph))
	}
	if c.Runnable() {
		r.page.Code("console", strings.TrimRight(usage(c)+"\n\n"+unindented(c.Example), "\n"))
		r.flags(c)
	}
	for _, below := range c.Commands() {
		r.add(below, level+1)
	}
}

func usage(c *cobra.Command) string {
	lines := []string{"kubectl " + strings.TrimPrefix(c.UseLine(), "kubectl ")}
	for _, alias := range c.Aliases {
		lines = append(lines, strings.Replace(lines[0], " "+c.Name(), " "+alias, 1))
	}
	return strings.Join(lines, "\n")
}

// unindented is an example as it would be typed.
func unindented(example string) string {
	var lines []string
	for line := range strings.SplitSeq(example, "\n") {
		lines = append(lines, strings.TrimPrefix(line, "  "))
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// flags has a table of those of the command's flags that are not kubectl's.
func (r *commandReference) flags(c *cobra.Command) {
	var own []reference.Flag
	var also []string
	for _, f := range reference.Flags(c.Flags()) {
		switch {
		case same(c, r.cluster, f.Name):
			also = append(also, "[those of kubectl](#flags-of-kubectl)")
		case f.Name != "output" && same(c, r.formats, f.Name):
			also = append(also, "[those of formats](#flags-of-formats)")
		default:
			own = append(own, f)
			continue
		}
		r.seen[f.Name] = true
	}
	slices.Sort(also)
	also = slices.Compact(also)
	slices.Reverse(also)
	if len(own) > 0 {
		r.page.Flags(own)
	}
	if len(also) > 0 {
		r.page.Say("It takes " + strings.Join(also, ", and ") + ".")
	}
}

// same reports whether a flag of a command is one of kubectl's.
func same(c *cobra.Command, set *pflag.FlagSet, name string) bool {
	f := set.Lookup(name)
	return f != nil && f.Usage == c.Flags().Lookup(name).Usage
}
