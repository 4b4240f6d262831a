// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangpreemption_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/internal/testing/simulated"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// classes are priority classes, by their values.
const classes = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: dear}
value: 5
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: system-node-critical}
value: 2000001000
`

// nodes are such as "n1:2", with their cores.
func nodes(specs ...string) string {
	var b strings.Builder
	for _, spec := range specs {
		name, cores, _ := strings.Cut(spec, ":")
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: '%s', memory: 64Gi}}\n", name, cores)
	}
	return b.String()
}

// group is a PodGroup; roles is its minTaskMember, such as "ps: 1".
func group(name string, least int, roles string) string {
	return fmt.Sprintf("---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s}\nspec: {minMember: %d, minTaskMember: {%s}}\n", name, least, roles)
}

// member is a pod of a gang, named "GANG-ROLE-INDEX", that runs on a node.
func member(name, node, class string) string {
	parts := strings.Split(name, "-")
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, annotations: {scheduling.k8s.io/group-name: %s, volcano.sh/task-spec: %s}}\n"+
		"spec: {schedulerName: volcano, nodeName: %s, priorityClassName: %s, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}\n"+
		"status: {phase: Running}\n", name, parts[0], parts[1], node, class)
}

// ordinary is a pod of the other profile, on a node if that is given.
func ordinary(name, node, class string, cores int) string {
	phase := ""
	if node != "" {
		phase = "status: {phase: Running}\n"
	}
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"+
		"spec: {schedulerName: default-scheduler, nodeName: '%s', priorityClassName: '%s', containers: [{name: c, image: i, resources: {requests: {cpu: '%d'}}}]}\n%s",
		name, node, class, cores, phase)
}

// gone simulates the shipped configuration on a cluster, and returns the pods that are not there in the end, of those that it was given.
func gone(t *testing.T, file string, change func(*schedulerconfig.KubeSchedulerConfiguration)) []string {
	t.Helper()
	config, err := profile.Only.Config()
	if err != nil {
		t.Fatal(err)
	}
	change(config)
	there := map[string]bool{}
	for _, p := range simulated.Pods(t, file, config, 4) {
		there[p.Name] = true
	}
	var left []string
	for line := range strings.SplitSeq(file, "\n") {
		name, ok := strings.CutPrefix(line, "metadata: {name: ")
		if name, _, _ = strings.Cut(strings.TrimSuffix(name, "}"), ","); ok && !strings.HasPrefix(name, "system") && (strings.Count(name, "-") == 2 || strings.HasPrefix(name, "plain")) && !there[name] {
			left = append(left, name)
		}
	}
	return left
}

// TestWhomOrdinaryPodsPreempt plays it with the plugin, and with upstream's own in its place, which must come out differently.
func TestWhomOrdinaryPodsPreempt(t *testing.T) {
	whole := group("whole", 2, "") + member("whole-w-0", "n1", "''") + member("whole-w-1", "n1", "''")
	for name, tc := range map[string]struct {
		file string
		want []string
		// same: upstream comes to the same.
		same bool
	}{
		"a dearer pod goes rather than a member of a whole gang": {
			file: nodes("n1:2", "n2:1") + whole + ordinary("plain", "n2", "dear", 1) + ordinary("u", "", "urgent", 1), want: []string{"plain"},
		},
		"nobody goes, if only whole gangs could": {
			file: nodes("n1:2") + whole + ordinary("u", "", "urgent", 1),
		},
		"two members on a node are not the same surplus": {
			file: nodes("n1:2") + group("spare", 1, "") + member("spare-w-0", "n1", "''") + member("spare-w-1", "n1", "''") + ordinary("u", "", "urgent", 2),
		},
		"of the surplus who goes last by rank": {
			file: nodes("n1:3") + group("spare", 2, "ps: 1") + member("spare-w-1", "n1", "''") + member("spare-w-0", "n1", "''") + member("spare-ps-2", "n1", "''") +
				ordinary("u", "", "urgent", 1),
			want: []string{"spare-w-1"},
		},
		"two preemptions have one surplus among them": {
			file: nodes("n1:1", "n2:1") + group("spare", 1, "") + member("spare-w-0", "n1", "''") + member("spare-w-1", "n2", "''") +
				ordinary("u", "", "urgent", 1) + ordinary("v", "", "urgent", 1),
			want: []string{"one of spare"},
		},
		"who the cluster cannot do without takes anybody": {
			file: nodes("n1:2") + whole + ordinary("u", "", "system-node-critical", 2), want: []string{"whole-w-0", "whole-w-1"}, same: true,
		},
		"a pod that is a job of its own is no gang": {
			file: nodes("n1:1") + strings.Replace(member("plain-x", "n1", "''"), "scheduling.k8s.io/group-name: plain, volcano.sh/task-spec: ", "none: ", 1) +
				ordinary("u", "", "urgent", 1),
			want: []string{"plain-x"}, same: true,
		},
		"nobody knows the minimum of a gang whose PodGroup is gone": {
			file: nodes("n1:1") + member("lost-w-0", "n1", "''") + ordinary("u", "", "urgent", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := classes + tc.file
			got := gone(t, file, func(*schedulerconfig.KubeSchedulerConfiguration) {})
			if len(tc.want) == 1 && tc.want[0] == "one of spare" && len(got) == 1 {
				got = tc.want
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("who is gone (-want,+got)\n%s", diff)
			}
			if plain := gone(t, file, upstream); cmp.Equal(plain, got) != tc.same {
				t.Errorf("with DefaultPreemption %v are gone, which tells nothing", plain)
			}
		})
	}
}

// upstream puts DefaultPreemption into the place of the plugin.
func upstream(c *schedulerconfig.KubeSchedulerConfiguration) {
	for i := range c.Profiles {
		enabled := c.Profiles[i].Plugins.MultiPoint.Enabled
		for k := range enabled {
			if enabled[k].Name == "GangPreemption" {
				enabled[k].Name = "DefaultPreemption"
				args := &schedulerconfig.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}
				c.Profiles[i].PluginConfig = append(c.Profiles[i].PluginConfig, schedulerconfig.PluginConfig{Name: "DefaultPreemption", Args: args})
			}
		}
	}
}
