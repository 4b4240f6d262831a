// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package convert is the commands "kubectl caldera convert" and "kubectl caldera validate".
package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
	"github.com/caldera-scheduler/caldera/pkg/volcano/schedulerconf"
)

// The forms of output.
const (
	asYAML   = "yaml"
	asReport = "report"
	asJSON   = "json"
)

var formats = []string{asYAML, asReport, asJSON}

// New returns the command convert.
func New() *cobra.Command {
	var output string
	var only bool
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Turn a volcano-scheduler.conf into a configuration of the scheduler",
		Long: `Turn a volcano-scheduler.conf into a KubeSchedulerConfiguration, which does the same without the file.

The configuration goes to standard output. A report goes to standard error: what becomes of every action, plugin,
switch and argument. "same" does what it does in Volcano, "changed" something else, "unsupported" nothing, and what is
"ignored by Volcano" is left out: it is misspelt, or belongs elsewhere.

FILE "-" is standard input. The scheduler also takes the file itself, with --volcano-conf.`,
		Example: `  # From what Volcano runs by
  kubectl get configmap -n volcano-system volcano-scheduler-configmap -o jsonpath='{.data.volcano-scheduler\.conf}' |
    kubectl caldera convert - > scheduler-config.yaml

  # The report only
  kubectl caldera convert volcano-scheduler.conf -o report`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			base := profile.Second
			if only {
				base = profile.Only
			}
			return convert(cmd, args[0], output, base)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", asYAML, "What to write to standard output: the configuration ("+asYAML+"), or the report ("+asReport+", "+asJSON+").")
	cmd.Flags().BoolVar(&only, "only-scheduler", false, "For the cluster's only scheduler, which places ordinary pods too. Default: for one beside kube-scheduler.")
	return cmd
}

func convert(cmd *cobra.Command, file, output string, base profile.Shipped) error {
	if !slices.Contains(formats, output) {
		return fmt.Errorf("--output is %q: use one of %s", output, strings.Join(formats, ", "))
	}
	data, err := read(cmd.InOrStdin(), file)
	if err != nil {
		return err
	}
	if profile.IsConfiguration(data) {
		return fmt.Errorf("%s is a KubeSchedulerConfiguration already", file)
	}
	args, ignored, err := schedulerconf.ParseLenient(data)
	if err != nil {
		return fmt.Errorf("%s cannot be converted: %w", file, lines(err))
	}
	c, err := base.Config()
	if err != nil {
		return err
	}
	if err := profile.SetVolcano(file, c, args); err != nil {
		return err
	}
	report := profile.Report(args, ignored)
	switch output {
	case asReport:
		return table(cmd.OutOrStdout(), report)
	case asJSON:
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	encoded, err := profile.Encode(c)
	if err != nil {
		return err
	}
	if _, err := cmd.OutOrStdout().Write(encoded); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return table(cmd.ErrOrStderr(), report)
}

// table writes the report in columns.
func table(out io.Writer, report []profile.Line) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "FATE\tFIELD\tVALUE\tNOTE")
	for _, l := range report {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Fate, l.Field, l.Value, l.Note)
	}
	return w.Flush()
}

// NewValidate returns the command validate.
func NewValidate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a volcano-scheduler.conf or a KubeSchedulerConfiguration",
		Long: `Check a volcano-scheduler.conf or a KubeSchedulerConfiguration: what it is follows from its content. Everything that is
wrong is told at once. A scheduler is started with it in this process, on an empty cluster in memory, so that plugins
that do not go together are found, too.

FILE "-" is standard input.`,
		Example: "  kubectl caldera validate volcano-scheduler.conf",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return validate(cmd, args[0]) },
	}
}

func validate(cmd *cobra.Command, file string) error {
	data, err := read(cmd.InOrStdin(), file)
	if err != nil {
		return err
	}
	c, err := profile.Read(file, data, profile.Only)
	if err != nil {
		return lines(err)
	}
	if _, err := simulate.Run(cmd.Context(), nil, simulate.Options{Config: c, Rounds: 1, Now: time.Now()}); err != nil {
		return fmt.Errorf("a scheduler does not start with %s: %w", file, err)
	}
	kind := "volcano-scheduler.conf"
	if profile.IsConfiguration(data) {
		kind = "KubeSchedulerConfiguration"
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is a valid %s\n", file, kind)
	return err
}

// lines writes errors that came together on a line each.
func lines(err error) error {
	aggregate, ok := errors.AsType[utilerrors.Aggregate](err)
	if !ok {
		return err
	}
	var text strings.Builder
	for _, one := range aggregate.Errors() {
		fmt.Fprintf(&text, "\n  %v", one)
	}
	return errors.New("the file has errors:" + text.String())
}

// read reads a configuration from a file, or from standard input.
func read(in io.Reader, file string) ([]byte, error) {
	data, err := leader.ReadFile(in, file)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return data, nil
}
