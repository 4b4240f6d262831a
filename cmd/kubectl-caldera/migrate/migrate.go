// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrate is the command "kubectl caldera migrate".
package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
)

// New returns the command.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Come here from Volcano",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newCheck())
	return cmd
}

type flags struct {
	*genericclioptions.ConfigFlags
	// conf is a volcano-scheduler.conf, if it is not to be read from the cluster.
	conf string
	// only: Caldera is to be the cluster's only scheduler.
	only   bool
	output string
}

// The forms of output.
const (
	asTable = "table"
	asJSON  = "json"
	asYAML  = "yaml"
)

var formats = []string{asTable, asJSON, asYAML}

func newCheck() *cobra.Command {
	f := flags{ConfigFlags: genericclioptions.NewConfigFlags(true)}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether this Volcano cluster can switch, and what is to be done before",
		Long: `Say whether this Volcano cluster can switch, and what is to be done before. Nothing is changed.

It looks at the version of the API server, at Volcano's definitions, Deployments and options, at each line of the scheduler's
configuration, and has Caldera place in memory what the cluster holds. What is "ok" is as it is to be. What "differs" will be
otherwise than with Volcano; see whether you can live with that. What is "to do" comes before the switch. What "stops" you
keeps the cluster from switching; the command fails then. What is "unknown" you may not read.`,
		Example: `  kubectl caldera migrate check

  # Caldera for ordinary pods, too
  kubectl caldera migrate check --only-scheduler

  # Another configuration than that of the cluster's scheduler
  kubectl caldera migrate check --conf volcano-scheduler.conf`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.check(cmd) },
	}
	f.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&f.conf, "conf", "", "volcano-scheduler.conf to switch with; - is standard input. Default: that of the cluster's volcano-scheduler.")
	cmd.Flags().BoolVar(&f.only, "only-scheduler", false, "Caldera is to be the cluster's only scheduler, which places ordinary pods too.")
	cmd.Flags().StringVarP(&f.output, "output", "o", asTable, "How to write it: "+strings.Join(formats, ", ")+".")
	return cmd
}

func (f *flags) check(cmd *cobra.Command) error {
	if !slices.Contains(formats, f.output) {
		return fmt.Errorf("--output is %q: use one of %s", f.output, strings.Join(formats, ", "))
	}
	config, err := f.ToRESTConfig()
	if err != nil {
		return err
	}
	r, err := newReader(config)
	if err != nil {
		return err
	}
	errOut := cmd.ErrOrStderr()
	fmt.Fprintln(errOut, "Reading the cluster ...")
	c, err := r.read(cmd.Context())
	if err != nil {
		return err
	}
	if f.conf != "" {
		data, err := leader.ReadFile(cmd.InOrStdin(), f.conf)
		if err != nil {
			return fmt.Errorf("reading the configuration: %w", err)
		}
		c.conf = conf{source: f.conf, data: data}
	}
	c.only, c.now = f.only, time.Now()
	fmt.Fprintf(errOut, "Having Caldera place in memory what is there: %s ...\n", leader.Count(len(c.objects), "object", "objects"))
	findings := c.findings(cmd.Context())
	if err := write(cmd.OutOrStdout(), f.output, findings); err != nil {
		return err
	}
	if n := count(findings, Stops); n > 0 {
		return fmt.Errorf("this cluster cannot switch: %s above", leader.Count(n, "line stops it", "lines stop it"))
	}
	return nil
}

// write writes what was found.
func write(out io.Writer, format string, findings []Finding) error {
	switch format {
	case asJSON:
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(findings)
	case asYAML:
		data, err := yaml.Marshal(findings)
		if err != nil {
			return err
		}
		_, err = out.Write(data)
		return err
	}
	rows := [][]string{{"STATE", "WHAT", "FOUND"}}
	for _, f := range findings {
		// Some notes end as sentences do.
		rows = append(rows, []string{string(f.State), f.What, strings.TrimSuffix(f.Found, ".")})
		if f.Do != "" {
			rows = append(rows, []string{" ", " ", "-> " + f.Do})
		}
	}
	err := leader.Columns(out, "", rows)
	_, err2 := fmt.Fprintf(out, "\n%s\n", verdict(findings))
	return errors.Join(err, err2)
}

// verdict is the answer in one sentence.
func verdict(findings []Finding) string {
	text := "This cluster can switch"
	if n := count(findings, Stops); n > 0 {
		text = "This cluster cannot switch: " + leader.Count(n, "line stops it", "lines stop it")
	} else if n := count(findings, ToDo); n > 0 {
		text += fmt.Sprintf(" once %s done", leader.Count(n, "thing is", "things are"))
	}
	var rest []string
	if n := count(findings, Differs); n > 0 {
		rest = append(rest, leader.Count(n, "thing will differ", "things will differ"))
	}
	if n := count(findings, Unknown); n > 0 {
		rest = append(rest, leader.Count(n, "thing is not known", "things are not known"))
	}
	if len(rest) > 0 {
		text += "; " + strings.Join(rest, ", ")
	}
	return text + "."
}

func count(findings []Finding, s State) (n int) {
	for _, f := range findings {
		if f.State == s {
			n++
		}
	}
	return n
}
