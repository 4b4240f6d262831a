// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// sizes are how many devices the pods ask for that slots are counted for, as in the metric caldera_slots.
var sizes = []int64{1, 2, 4, 8}

// nodes follows nodes and pods with the user's rights.
type nodes struct {
	nodes corelisters.NodeLister
	pods  corelisters.PodLister
	// schedulers are the names by which pods ask for the scheduler.
	schedulers []string
}

// follow begins to follow nodes and pods, and returns once all are known. It says so if the user may not.
func (f *flags) follow(ctx context.Context, client *leader.Client) (*nodes, error) {
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	// Objects come in protobuf, which is a fraction of JSON.
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	// Informers would try again and again.
	one := metav1.ListOptions{Limit: 1}
	if _, err := kube.CoreV1().Nodes().List(ctx, one); err != nil {
		return nil, err
	}
	if _, err := kube.CoreV1().Pods("").List(ctx, one); err != nil {
		return nil, err
	}
	cluster := &v1alpha1.ClusterView{}
	if err := client.Get(ctx, v1alpha1.ClusterViews, "", v1alpha1.ClusterName, cluster); err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(kube, 0)
	n := &nodes{nodes: factory.Core().V1().Nodes().Lister(), pods: factory.Core().V1().Pods().Lister(), schedulers: cluster.Status.Leader.Profiles}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return n, context.Cause(ctx)
}

// devices are those of all nodes, by the scheduler's own model.
func (n *nodes) devices() []model.Devices {
	state := model.NewState()
	for _, name := range n.schedulers {
		state.AddScheduler(name)
	}
	// What is in memory can be listed.
	all, _ := n.nodes.List(labels.Everything())
	for _, node := range all {
		state.UpsertNode(node)
	}
	pods, _ := n.pods.List(labels.Everything())
	for _, pod := range pods {
		state.UpsertPod(pod)
	}
	return state.Devices()
}

// write writes a line for each node and resource, the fullest first, and sums. Of one resource only if it is named.
func write(out io.Writer, devices []model.Devices, name string, width int) error {
	if name != "" {
		devices = slices.DeleteFunc(slices.Clone(devices), func(d model.Devices) bool { return d.Resource != corev1.ResourceName(name) })
	}
	if len(devices) == 0 {
		_, err := fmt.Fprintln(out, "No node has such devices.")
		return err
	}
	head := []string{"NODE", "RESOURCE", "TAKEN", "FREE", "OF"}
	for _, size := range sizes {
		head = append(head, fmt.Sprintf("FIT %d", size))
	}
	table := [][]string{head}
	slices.SortStableFunc(devices, fullestFirst)
	for _, d := range devices {
		table = append(table, row(d.Node, d, bars(d, width)))
	}
	table = append(table, sums(devices)...)
	return leader.Columns(out, "", table)
}

// fullestFirst orders by resource, then by the part that is taken.
func fullestFirst(a, b model.Devices) int {
	free := func(d model.Devices) float64 { return float64(d.Left) / float64(d.All) }
	return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(free(a), free(b)), cmp.Compare(a.Node, b.Node))
}

func row(label string, d model.Devices, bar string) []string {
	cells := []string{label, string(d.Resource), bar, strconv.FormatInt(d.Left, 10), strconv.FormatInt(d.All, 10)}
	for _, size := range sizes {
		cells = append(cells, strconv.FormatInt(d.Slots(size), 10))
	}
	return cells
}

// bars draws a node: a character for each device, or fewer if they do not fit.
func bars(d model.Devices, width int) string {
	if d.Shut {
		return "cordoned or not ready"
	}
	length := min(d.All, int64(width))
	taken := int64(float64(d.All-d.Left) / float64(d.All) * float64(length))
	if taken == 0 && d.Left < d.All {
		taken = 1
	}
	return strings.Repeat("=", int(taken)) + strings.Repeat(".", int(length-taken))
}

// sums are a line for each resource. Pods that fit are summed node by node: what is free here and there is not room for one.
func sums(devices []model.Devices) [][]string {
	var lines [][]string
	for rest := devices; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(d model.Devices) bool { return d.Resource != rest[0].Resource })
		if n < 0 {
			n = len(rest)
		}
		sum, fit := model.Devices{Resource: rest[0].Resource}, make([]int64, len(sizes))
		for _, d := range rest[:n] {
			sum.All, sum.Left = sum.All+d.All, sum.Left+d.Left
			for i, size := range sizes {
				fit[i] += d.Slots(size)
			}
		}
		line := row(fmt.Sprintf("all %d", n), sum, "")
		for i := range sizes {
			line[len(line)-len(sizes)+i] = strconv.FormatInt(fit[i], 10)
		}
		lines, rest = append(lines, line), rest[n:]
	}
	return lines
}
