// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

// podKind is what pods a contender is given: equal in all but how they are grouped.
type podKind string

const (
	// plainPods are pods of the default scheduler without groups.
	plainPods podKind = "plain"
	// alonePods are batch pods without groups: jobs of one pod.
	alonePods podKind = "alone"
	// volcanoPods are gangs by Volcano's PodGroups.
	volcanoPods podKind = "volcano"
	// nativePods are gangs by Kubernetes' own PodGroups.
	nativePods podKind = "native"
	// batchNativePods are the same for the batch scheduler.
	batchNativePods podKind = "batch-native"
)

// contender is one of the schedulers compared.
type contender struct {
	name, about string
	pods        podKind
	// rival: not one of ours; ours are related to it.
	rival bool
	// pkg is built into binary, unless it is empty.
	pkg, binary string
	config      []byte
	// gangArgs are arguments of the plugin Gang.
	gangArgs map[string]any
	// args are further arguments of the program, in which {kubeconfig} and {qps} are replaced.
	args []string
	// queues is the number of queues the gangs are spread over; 0: all are in the default queue.
	queues int
	// views is how many times a second somebody asks it for its queues.
	views int
	// gates and apis are switched on in the control plane.
	gates, apis []string
}

// known returns the contenders that have a name.
func known(o options) []contender {
	stock := []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
	return []contender{
		{name: "caldera", about: "gangs by Volcano's PodGroups", pods: volcanoPods},
		{name: "alone", about: "Caldera with batch pods without groups: jobs of one pod", pods: alonePods},
		{name: "plain", about: "Caldera's profile default-scheduler with pods without groups", pods: plainPods},
		{name: "queues", about: "Caldera with the gangs spread over queues", pods: volcanoPods, queues: o.queues},
		{name: "tiers", about: "Caldera by a volcano-scheduler.conf", pods: volcanoPods, args: []string{"--volcano-conf=" + o.tiers}},
		{
			name: "viewed", about: "Caldera, which is asked for its queues --views times a second", pods: volcanoPods, views: o.views,
			args: []string{"--visibility-port={port}"},
		},
		{name: "per-gang", about: "Caldera with one event a gang instead of one a pod", pods: volcanoPods, gangArgs: map[string]any{"scheduledEvents": "PerGang"}},
		{name: "stock", about: "upstream's kube-scheduler with pods without groups", pods: plainPods, rival: true, pkg: stockPackage, config: stock},
		{
			name: "native", about: "upstream's kube-scheduler with its own PodGroups", pods: nativePods, rival: true, pkg: stockPackage, config: stock,
			args: []string{"--feature-gates=GenericWorkload=true"}, gates: []string{"GenericWorkload=true"}, apis: []string{"scheduling.k8s.io/v1beta1=true"},
		},
		{
			name: "own-native", about: "Caldera with gangs by Kubernetes' own PodGroups", pods: batchNativePods,
			gates: []string{"GenericWorkload=true"}, apis: []string{"scheduling.k8s.io/v1beta1=true"},
		},
		{name: "limit", about: "no scheduler: a client that writes binds and their events from 64 workers", pods: plainPods, rival: true},
	}
}

const (
	calderaPackage = "./cmd/kube-scheduler"
	stockPackage   = "k8s.io/kubernetes/cmd/kube-scheduler"
)

// describe lists the contenders for people.
func describe() string {
	var lines strings.Builder
	for _, c := range known(options{}) {
		fmt.Fprintf(&lines, "  %-10s %s\n", c.name, c.about)
	}
	return lines.String()
}

// prepare chooses the contenders and builds their programs.
func prepare(ctx context.Context, o options) ([]contender, error) {
	all := known(o)
	wanted := slices.Clone(o.contenders)
	for _, said := range o.others {
		c, err := parseOther(said)
		if err != nil {
			return nil, err
		}
		all, wanted = append(all, c), append(wanted, c.name)
	}
	var list []contender
	for _, name := range wanted {
		i := slices.IndexFunc(all, func(c contender) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--contenders has %q, which there is not: use\n%s", name, describe())
		}
		list = append(list, all[i])
	}
	fmt.Fprintln(os.Stderr, "building localcluster and the schedulers (a first build takes minutes)")
	if _, err := localcluster.Build(ctx); err != nil {
		return nil, err
	}
	for i := range list {
		if err := list[i].build(ctx, o); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// build makes the contender's program.
func (c *contender) build(ctx context.Context, o options) (err error) {
	switch {
	case c.name == "limit":
		c.binary, err = os.Executable()
		c.args = []string{"limit", "--kubeconfig={kubeconfig}", "--qps={qps}"}
		return err
	case c.binary != "":
		return nil
	case c.pkg == "":
		if c.config, err = shipped(c.gangArgs); err != nil {
			return err
		}
		if c.binary = o.binary; c.binary != "" {
			return nil
		}
		c.pkg = calderaPackage
	}
	name := "kube-scheduler"
	if c.rival {
		name = "stock-kube-scheduler"
	}
	if c.binary, err = filepath.Abs(filepath.Join("_output", "bin", name)); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", c.binary, c.pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s: %w", c.pkg, err)
	}
	return nil
}

// shipped returns the configuration that comes with Caldera, with arguments of the plugin Gang in its batch profile.
func shipped(gangArgs map[string]any) ([]byte, error) {
	data, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil || gangArgs == nil {
		return data, err
	}
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	profiles, _, err := unstructured.NestedSlice(config, "profiles")
	if err != nil {
		return nil, err
	}
	profiles[0].(map[string]any)["pluginConfig"] = []any{map[string]any{"name": "Gang", "args": gangArgs}}
	config["profiles"] = profiles
	return yaml.Marshal(config)
}

// parseOther reads a value of --other.
func parseOther(said string) (contender, error) {
	name, command, ok := strings.Cut(said, "=")
	name, pods, kinded := strings.Cut(name, ":")
	words := strings.Fields(command)
	kinds := []podKind{plainPods, alonePods, volcanoPods, nativePods, batchNativePods}
	if !ok || !kinded || name == "" || len(words) == 0 || !slices.Contains(kinds, podKind(pods)) {
		return contender{}, fmt.Errorf("--other is %q: write NAME:PODS=COMMAND LINE, where PODS is one of %q", said, kinds)
	}
	return contender{name: name, about: command, pods: podKind(pods), rival: true, binary: words[0], args: words[1:]}, nil
}

// arguments are those of the program for one cluster.
func (c *contender) arguments(kubeconfig string, qps int) []string {
	replace := strings.NewReplacer("{kubeconfig}", kubeconfig, "{qps}", strconv.Itoa(qps))
	args := make([]string, len(c.args))
	for i, arg := range c.args {
		args[i] = replace.Replace(arg)
	}
	return args
}
