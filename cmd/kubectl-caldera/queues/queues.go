// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package queues are the commands "kubectl caldera queues" and "kubectl caldera queue".
package queues

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// flags are those of the command queues.
type flags struct {
	*leader.Flags
	output   *leader.Output
	resource string
	watch    leader.Watch
}

// New returns the command queues.
func New() *cobra.Command {
	f := flags{Flags: leader.NewFlags(), output: leader.NewOutput()}
	cmd := &cobra.Command{
		Use:     "queues",
		Aliases: []string{"q"},
		Short:   "Show what queues hold, are due and may hold, and how many jobs wait in them",
		Long: `Show what queues hold, are due and may hold, and how many jobs wait in them.

One resource is shown: the devices of which the cluster has most, else cpu. -o wide shows all.
HELD, DUE and LIMIT are those of a queue with all queues below it.

Who may not see all queues sees those that have jobs of the namespace.`,
		Example: `  # All queues, by their GPUs
  kubectl caldera queues

  # By memory, every two seconds
  kubectl caldera queues --resource memory -w

  # For a script
  kubectl caldera queues -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.With(cmd, f.show) },
	}
	f.Add(cmd, true)
	f.output.Add(cmd, "shows all resources")
	cmd.Flags().StringVar(&f.resource, "resource", "", "The resource that is shown, like cpu or nvidia.com/gpu.")
	f.watch.Add(cmd)
	return cmd
}

func (f *flags) show(ctx context.Context, client *leader.Client) error {
	return f.watch.Repeat(ctx, client.Streams.Out, func(out io.Writer) error {
		list, views, note, err := Read(ctx, f.Flags, client)
		if err != nil {
			return err
		}
		if note != "" {
			fmt.Fprintln(client.Streams.ErrOut, note)
		}
		return f.output.Write(out, list, func(out io.Writer) error {
			if len(views) == 0 {
				_, err := fmt.Fprintln(out, "There are no queues.")
				return err
			}
			return write(out, views, corev1.ResourceName(f.resource), f.output.Wide())
		})
	})
}

// Read reads all queues, or those of the namespace if the user may not read all and has not asked for them; a note says so then.
func Read(ctx context.Context, f *leader.Flags, client *leader.Client) (list runtime.Object, views []View, note string, err error) {
	all := &v1alpha1.QueueViewList{}
	err = client.List(ctx, v1alpha1.QueueViews, "", metav1.ListOptions{}, all)
	if err == nil {
		views := make([]View, len(all.Items))
		for i := range all.Items {
			views[i] = View{all.Items[i].Name, &all.Items[i].Status}
		}
		return all, views, "", nil
	}
	if !apierrors.IsForbidden(err) || f.AllNamespaces {
		return nil, nil, "", err
	}
	namespace, err := f.Scope()
	if err != nil {
		return nil, nil, "", err
	}
	local := &v1alpha1.LocalQueueViewList{}
	if err := client.List(ctx, v1alpha1.LocalQueueViews, namespace, metav1.ListOptions{}, local); err != nil {
		return nil, nil, "", err
	}
	views = make([]View, len(local.Items))
	for i := range local.Items {
		views[i] = View{local.Items[i].Name, &local.Items[i].Status}
	}
	return local, views, fmt.Sprintf("You may not see all queues; these have jobs of namespace %s.", namespace), nil
}
