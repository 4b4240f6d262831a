// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// queueArgs returns the arguments of BatchQueue of each profile.
func queueArgs(c *schedulerconfig.KubeSchedulerConfiguration) map[string]*config.BatchQueueArgs {
	args := map[string]*config.BatchQueueArgs{}
	for _, p := range c.Profiles {
		for _, plugin := range p.PluginConfig {
			if plugin.Name == names.BatchQueue {
				args[p.SchedulerName] = plugin.Args.(*config.BatchQueueArgs)
			}
		}
	}
	return args
}

func TestAVolcanoConfGoesIntoEveryProfile(t *testing.T) {
	c, err := profile.Read("v", []byte("actions: \"allocate\"\ntiers:\n- plugins:\n  - name: gang\n"), profile.Only)
	check(t, err)
	args := queueArgs(c)
	for _, scheduler := range []string{"volcano", "default-scheduler"} {
		if args[scheduler] == nil || len(args[scheduler].Tiers) != 1 || args[scheduler].Tiers[0].Plugins[0].Name != config.PluginGang {
			t.Errorf("profile %s has %+v", scheduler, args[scheduler])
		}
		if diff := cmp.Diff([]config.Action{config.Allocate}, args[scheduler].Actions); diff != "" {
			t.Errorf("actions of profile %s (-want,+got)\n%s", scheduler, diff)
		}
	}
}

func TestAConfigurationOfKubeSchedulerIsTakenAsItIs(t *testing.T) {
	data, err := manifests.All.ReadFile("config/volcano-only.yaml")
	check(t, err)
	c, err := profile.Read("k", []byte(strings.ReplaceAll(string(data), "schedulerName: volcano", "schedulerName: mine")), profile.Only)
	check(t, err)
	r, err := run(t, node("n1", 2)+pod("p", "schedulerName: mine", "")+pod("q", "schedulerName: volcano", ""), simulate.Options{Config: c})
	check(t, err)
	if diff := cmp.Diff([]string{"p n1 Running 1", "q - Pending 0"}, pods(r)); diff != "" {
		t.Errorf("pods (-want,+got)\n%s", diff)
	}
}

func TestAConfigurationWithoutCalderaIsRefused(t *testing.T) {
	c, err := profile.Read("k", []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"), profile.Only)
	check(t, err)
	const want = "no profile of the configuration has the plugin BatchQueue"
	if _, err := run(t, "", simulate.Options{Config: c}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestConfigurationsThatCannotBeAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"a plugin that volcano does not have": {"tiers:\n- plugins:\n  - name: drff\n", `reading the.conf: tiers[0].plugins[0].name: Unsupported value: "drff"`},
		"a field that kube-scheduler does not have": {
			"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofile: []\n", `unknown field "profile"`,
		},
		"a value that kube-scheduler refuses": {
			"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: -1\n", "checking the.conf: parallelism",
		},
		"another kind": {"apiVersion: v1\nkind: Pod\n", "reading the.conf"},
		"no yaml":      {"{", "reading the.conf"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := profile.Read("the.conf", []byte(tc.file), profile.Only); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
