// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/jobs"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// one are the flags of the command queue.
type one struct {
	*leader.Flags
	output *leader.Output
}

// NewQueue returns the command queue.
func NewQueue() *cobra.Command {
	f := one{Flags: leader.NewFlags(), output: leader.NewOutput()}
	cmd := &cobra.Command{
		Use:   "queue NAME",
		Short: "Show one queue with its resources, and the jobs of it that wait; open or close it",
		Example: `  # What queue research holds, and who waits in it
  kubectl caldera queue research

  # Let it start no new jobs
  kubectl caldera queue close research`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.With(cmd, func(ctx context.Context, client *leader.Client) error { return f.show(ctx, client, args[0]) })
		},
	}
	f.Add(cmd, false)
	f.output.Add(cmd, "is the same")
	cmd.AddCommand(
		newSwitch("open", "Have a queue start new jobs", volcano.QueueStateOpen),
		newSwitch("close", "Have a queue start no new jobs; those that run are left alone", volcano.QueueStateClosed),
	)
	return cmd
}

func (f *one) show(ctx context.Context, client *leader.Client, name string) error {
	queue := &v1alpha1.QueueView{}
	if err := client.Get(ctx, v1alpha1.QueueViews, "", name, queue); err != nil {
		return err
	}
	waiting := &v1alpha1.JobViewList{}
	selector := fields.Set{"status.queue": name, "status.waiting": "true"}.AsSelector().String()
	if err := client.List(ctx, v1alpha1.JobViews, "", metav1.ListOptions{FieldSelector: selector}, waiting); err != nil {
		return err
	}
	return f.output.Write(client.Streams.Out, queue, func(out io.Writer) error {
		if err := writeAll(out, []View{{queue.Name, &queue.Status}}); err != nil || len(waiting.Items) == 0 {
			return err
		}
		fmt.Fprintln(out)
		return jobs.Write(out, waiting.Items, true, false)
	})
}

// newSwitch returns a command that opens or closes a queue.
func newSwitch(verb, short string, state volcano.QueueState) *cobra.Command {
	f := leader.NewFlags()
	cmd := &cobra.Command{
		Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := f.ToRESTConfig()
			if err != nil {
				return err
			}
			client, err := volcanoclient.NewForConfig(config)
			if err != nil {
				return err
			}
			patch := fmt.Appendf(nil, `{"status":{"state":%q}}`, state)
			_, err = client.SchedulingV1beta1().Queues().Patch(cmd.Context(), args[0], types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "queue %s is %s\n", args[0], strings.ToLower(string(state)))
			return nil
		},
	}
	f.AddFlags(cmd.Flags())
	return cmd
}
