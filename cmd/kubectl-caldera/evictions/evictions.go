// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evictions is the command "kubectl caldera evictions".
package evictions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

// formats are the values of --output.
var formats = []string{"table", "wide", "json", "yaml"}

// flags are the command's flags.
type flags struct {
	kubeconfig string
	context    string
	namespace  string
	scheduler  string
	authority  string
	insecure   bool
	queue      string
	output     string
}

// New returns the command.
func New() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "evictions [JOB]",
		Short: "Show which pods were evicted, for whom and by which rule",
		Long: `Show which pods were evicted, for whom and by which rule, and what came of it.

The scheduler remembers its last decisions to evict since it started, and serves them on its secure port to those who
may get /configz. With more than one replica, ask the leader: the others have decided nothing.

JOB is the name of a PodGroup, or of a pod without one, or NAMESPACE/NAME: the decisions for that job and those that
took from it are shown, with every victim and why other pods were kept.`,
		Example: `  # Forward the port of the scheduler that leads, then look at all decisions
  ` + portForward + ` &
  kubectl caldera evictions --insecure-skip-tls-verify

  # What was evicted for a job, or taken from it
  kubectl caldera evictions ml/train --certificate-authority scheduler-ca.crt

  # What queue research lost or got, for a script
  kubectl caldera evictions --queue research -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	set := cmd.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "Kubeconfig whose credentials are shown to the scheduler. Default: as kubectl.")
	set.StringVar(&f.context, "context", "", "Context of the kubeconfig. Default: the current one.")
	set.StringVarP(&f.namespace, "namespace", "n", "", "Namespace of JOB. Default: the one of the context.")
	set.StringVar(&f.scheduler, "scheduler", "https://127.0.0.1:10259", "URL of the scheduler's secure port.")
	set.StringVar(&f.authority, "certificate-authority", "", "File with the certificates that the scheduler's is checked against. "+
		"Default: those of the cluster in the kubeconfig.")
	set.BoolVar(&f.insecure, "insecure-skip-tls-verify", false, "Do not check the scheduler's certificate. "+
		"Whoever listens at the URL then gets your credentials.")
	set.StringVar(&f.queue, "queue", "", "Show only decisions for jobs of this queue, or with victims in it.")
	set.StringVarP(&f.output, "output", "o", formats[0], "How to write them: "+strings.Join(formats, ", ")+". wide lists the victims.")
	cmd.MarkFlagsMutuallyExclusive("certificate-authority", "insecure-skip-tls-verify")
	return cmd
}

// run asks the scheduler and writes what it says.
func (f *flags) run(cmd *cobra.Command, args []string) error {
	if !slices.Contains(formats, f.output) {
		return fmt.Errorf("--output is %q: use one of %s", f.output, strings.Join(formats, ", "))
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.Context.Namespace = f.namespace
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	keep := selection{queue: f.queue}
	if len(args) == 1 {
		var err error
		if keep.namespace, keep.name, err = job(args[0], config); err != nil {
			return err
		}
	}
	doc, err := f.fetch(cmd.Context(), config)
	if err != nil {
		return err
	}
	doc.Decisions = slices.DeleteFunc(doc.Decisions, func(d eviction.DecisionRecord) bool { return !keep.matches(d) })
	return write(cmd.OutOrStdout(), f.output, doc, keep.name != "", time.Now())
}

// job reads the name of a job.
func job(arg string, config clientcmd.ClientConfig) (namespace, name string, err error) {
	parts := strings.Split(arg, "/")
	if len(parts) > 2 || slices.Contains(parts, "") {
		return "", "", fmt.Errorf("the job is %q: write NAME or NAMESPACE/NAME", arg)
	}
	if len(parts) == 2 {
		return parts[0], parts[1], nil
	}
	namespace, _, err = config.Namespace()
	if err != nil {
		return "", "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return namespace, arg, nil
}

// selection is what a user wants to see; what is empty does not matter.
type selection struct{ namespace, name, queue string }

// matches reports whether a decision concerns the job and the queue, as the taker or as a victim.
func (s selection) matches(d eviction.DecisionRecord) bool {
	concerns := func(matches func(eviction.JobRecord) bool) bool {
		return matches(d.Job) || slices.ContainsFunc(d.Victims, func(v eviction.VictimRecord) bool { return matches(v.Job) })
	}
	return (s.name == "" || concerns(func(j eviction.JobRecord) bool { return j.Namespace == s.namespace && j.Name == s.name })) &&
		(s.queue == "" || concerns(func(j eviction.JobRecord) bool { return j.Queue == s.queue }))
}
