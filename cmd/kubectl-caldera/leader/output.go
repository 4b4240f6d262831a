// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// Streams are those of a command.
func Streams(cmd *cobra.Command) genericiooptions.IOStreams {
	return genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr()}
}

// ReadFile reads a file whole; "-" is standard input.
func ReadFile(in io.Reader, file string) ([]byte, error) {
	if file == "-" {
		data, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		return data, nil
	}
	return os.ReadFile(file)
}

// Output says how views are written: as a table, or as kubectl writes objects.
type Output struct {
	flags *genericclioptions.PrintFlags
}

// The formats that people read, and that of names. The latter's printer knows no lists.
const (
	table = ""
	wide  = "wide"
	names = "name"
)

// NewOutput returns kubectl's own formats, and tables.
func NewOutput() *Output {
	return &Output{flags: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme).WithDefaultOutput(table)}
}

// Add adds the flags to a command. What wide shows is said in the help.
func (o *Output) Add(cmd *cobra.Command, ofWide string) {
	o.flags.AddFlags(cmd)
	usage := cmd.Flags().Lookup("output")
	formats := append(slices.Clone(o.flags.AllowedFormats()), wide)
	slices.Sort(formats)
	usage.Usage = fmt.Sprintf("How to write it: %s. Default: a table. wide %s.", strings.Join(formats, ", "), ofWide)
}

// Wide reports whether the long table is wanted.
func (o *Output) Wide() bool { return *o.flags.OutputFormat == wide }

// Objects reports whether objects are wanted, and no table.
func (o *Output) Objects() bool { return *o.flags.OutputFormat != table && !o.Wide() }

// Write writes an object as it is wanted; people have it written by a function.
func (o *Output) Write(out io.Writer, object runtime.Object, people func(io.Writer) error) error {
	if format := *o.flags.OutputFormat; format == table || format == wide {
		return people(out)
	}
	printer, err := o.flags.ToPrinter()
	if err != nil {
		return err
	}
	if *o.flags.OutputFormat == names && meta.IsListType(object) {
		return meta.EachListItem(object, func(item runtime.Object) error {
			if err := named(item); err != nil {
				return err
			}
			return printer.PrintObj(item, out)
		})
	}
	return printer.PrintObj(object, out)
}

// named gives an object of a list its kind, which it does not have there.
func named(item runtime.Object) error {
	kinds, _, err := scheme.ObjectKinds(item)
	if err != nil {
		return err
	}
	item.GetObjectKind().SetGroupVersionKind(kinds[0])
	return nil
}

// Columns writes rows with aligned columns, each after an indent. What is empty is a dash.
func Columns(out io.Writer, indent string, rows [][]string) error {
	w := printers.GetNewTabWriter(out)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i := range row {
			cells[i] = cmp.Or(row[i], "-")
		}
		fmt.Fprintln(w, indent+strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// Age is how long ago a time was by another clock, as kubectl writes it; empty for no time.
func Age(t *metav1.Time, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(t.Time)))
}

// Count is a number of things.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
