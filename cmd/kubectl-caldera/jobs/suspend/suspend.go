// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suspend is the commands "kubectl caldera jobs suspend" and "kubectl caldera jobs resume".
package suspend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
)

// The values of --dry-run, which are kubectl's.
const (
	reallyDo    = "none"
	askServer   = "server"
	onlyPrinted = "client"
)

var dryRuns = []string{reallyDo, askServer, onlyPrinted}

// action is one of the two commands.
type action struct {
	*leader.Flags
	suspend bool
	dryRun  string
}

// New returns the command suspend.
func New() *cobra.Command {
	return newCommand(true, &cobra.Command{
		Use:   "suspend JOB",
		Short: "Have the owner of a job take its pods away until it is resumed",
		Long: `Have the owner of a job take its pods away until it is resumed.

It is the owner's own switch that is set: spec.suspend of Jobs, JobSets, TrainJobs, RayJobs and RayClusters, spec.runPolicy.suspend of
Kubeflow's training operator; Volcano's jobs are aborted by a Command, as by vcctl. Of several owners, one of the other, it is the topmost
that has such a switch. What becomes of work that was done is up to that owner: pods are deleted.

JOB is the name of the job as "kubectl caldera jobs" shows it, or that of its owner. NAMESPACE/NAME names one of another namespace.`,
		Example: `  # Make room for now
  kubectl caldera jobs suspend train

  # See what would be changed
  kubectl caldera jobs suspend ml/train --dry-run=server`,
	})
}

// NewResume returns the command resume.
func NewResume() *cobra.Command {
	return newCommand(false, &cobra.Command{
		Use:   "resume JOB",
		Short: "Have the owner of a job that was suspended start it again",
		Long: `Have the owner of a job that was suspended start it again. It waits in its queue like any other then.

A job that is suspended may have no pods and no PodGroup: JOB is then the name of its owner. NAMESPACE/NAME names one of another namespace.`,
		Example: "  kubectl caldera jobs resume train",
	})
}

func newCommand(suspend bool, cmd *cobra.Command) *cobra.Command {
	a := action{Flags: leader.NewFlags(), suspend: suspend}
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.With(cmd, func(ctx context.Context, client *leader.Client) error { return a.do(ctx, client, args[0]) })
	}
	a.Add(cmd, false)
	cmd.Flags().StringVar(&a.dryRun, "dry-run", reallyDo, `Must be "none", "server", or "client". With client nothing is sent, with server nothing is stored.`)
	return cmd
}

func (a *action) do(ctx context.Context, client *leader.Client, arg string) error {
	if !slices.Contains(dryRuns, a.dryRun) {
		return fmt.Errorf("--dry-run is %q: use one of %s", a.dryRun, strings.Join(dryRuns, ", "))
	}
	namespace, name, err := a.Job(arg)
	if err != nil {
		return err
	}
	c, err := newCluster(a.Flags, namespace)
	if err != nil {
		return err
	}
	found, err := a.find(ctx, client, c, name)
	if err != nil {
		return err
	}
	if found.above != nil {
		fmt.Fprintf(client.Streams.ErrOut, "%s controls %s, and may undo this.\n", found.above, found.object)
	}
	said, err := c.set(ctx, found, a.suspend, a.dryRun)
	if err != nil {
		return err
	}
	fmt.Fprintln(client.Streams.Out, said)
	return nil
}

// find finds what is to be switched: above the object of a job, or of this name. Of a job that is suspended already there may be no more than its owner.
func (a *action) find(ctx context.Context, client *leader.Client, c *cluster, name string) (*switchable, error) {
	job, err := client.Find(ctx, c.namespace, name)
	switch {
	case err == nil:
		o, err := c.read(ctx, job.Status.Object.APIVersion, job.Status.Object.Kind, job.Status.Object.Name)
		if err != nil {
			return nil, err
		}
		return c.topOf(ctx, o)
	case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return nil, err
	}
	named, refused := c.named(ctx, name)
	switch len(named) {
	case 0:
		return nil, errors.Join(fmt.Errorf("%w, and nothing else of that name that can be suspended", err), refused)
	case 1:
		return named[0], nil
	}
	return nil, fmt.Errorf("several objects of namespace %s are called %s: %s; set the switch of one with kubectl", c.namespace, name, list(named))
}

// list writes objects as part of a sentence.
func list(of []*switchable) string {
	names := make([]string, len(of))
	for i, s := range of {
		names[i] = s.String()
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// dry is how the API server is told that nothing is to be stored.
func dry(run string) []string {
	if run == askServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// suffix is what kubectl writes behind what it has not done.
func suffix(run string) string {
	switch run {
	case askServer:
		return " (server dry run)"
	case onlyPrinted:
		return " (dry run)"
	}
	return ""
}
