// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// Flag is a flag of a command line.
type Flag struct{ Name, short, kind, otherwise, usage string }

// Flags are those of a set that are shown, by their names.
func Flags(set *pflag.FlagSet) []Flag {
	var all []Flag
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		one := Flag{Name: f.Name, short: f.Shorthand, kind: kind, otherwise: f.DefValue, usage: usage}
		if one.kind == "" {
			one.kind = f.Value.Type()
		}
		switch one.otherwise {
		case "[]", "<nil>":
			one.otherwise = ""
		}
		// The page is the same on all machines.
		if home, err := os.UserHomeDir(); err == nil && home != "/" {
			one.otherwise = strings.Replace(one.otherwise, home, "$HOME", 1)
		}
		all = append(all, one)
	})
	return all
}

// Flags adds a table of flags.
func (p *Page) Flags(flags []Flag) {
	rows := make([][]string, 0, len(flags))
	for _, f := range flags {
		name := Quote("--" + f.Name)
		if f.short != "" {
			name = Quote("-"+f.short) + ", " + name
		}
		rows = append(rows, []string{name, f.kind, Quote(f.otherwise), Sentence(f.usage)})
	}
	p.Table([]string{"flag", "type", "default", "what it does"}, rows)
}
