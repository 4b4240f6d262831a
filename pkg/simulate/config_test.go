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
	c, err := simulate.ReadConfig("v", []byte("actions: \"allocate\"\ntiers:\n- plugins:\n  - name: gang\n"))
	check(t, err)
	args := queueArgs(c)
	for _, profile := range []string{"volcano", "default-scheduler"} {
		if args[profile] == nil || len(args[profile].Tiers) != 1 || args[profile].Tiers[0].Plugins[0].Name != config.PluginGang {
			t.Errorf("profile %s has %+v", profile, args[profile])
		}
		if diff := cmp.Diff([]config.Action{config.Allocate}, args[profile].Actions); diff != "" {
			t.Errorf("actions of profile %s (-want,+got)\n%s", profile, diff)
		}
	}
}

func TestAConfigurationOfKubeSchedulerIsTakenAsItIs(t *testing.T) {
	data, err := manifests.All.ReadFile("config/volcano-only.yaml")
	check(t, err)
	c, err := simulate.ReadConfig("k", []byte(strings.ReplaceAll(string(data), "schedulerName: volcano", "schedulerName: mine")))
	check(t, err)
	r, err := run(t, node("n1", 2)+pod("p", "schedulerName: mine", "")+pod("q", "schedulerName: volcano", ""), simulate.Options{Config: c})
	check(t, err)
	if diff := cmp.Diff([]string{"p n1 Running 1", "q - Pending 0"}, pods(r)); diff != "" {
		t.Errorf("pods (-want,+got)\n%s", diff)
	}
}

func TestAConfigurationWithoutCalderaIsRefused(t *testing.T) {
	c, err := simulate.ReadConfig("k", []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"))
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
			if _, err := simulate.ReadConfig("the.conf", []byte(tc.file)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
