// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
)

// start builds a scheduler from a configuration file, as the command does, and returns why it would not start.
func start(t *testing.T, file string) error {
	t.Helper()
	return startWith(klog.NewContext(t.Context(), klog.Logger{}), t, file)
}

func startWith(ctx context.Context, t *testing.T, file string) error {
	t.Helper()
	object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	// An API server that serves no group API.
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	client := fake.NewClientset()
	_, err = scheduler.New(ctx, client, scheduler.NewInformerFactory(client, 0, nil), nil,
		profile.NewRecorderFactory(events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})),
		scheduler.WithKubeConfig(&rest.Config{Host: server.URL}),
		scheduler.WithProfiles(object.(*schedulerconfig.KubeSchedulerConfiguration).Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(plugins.Registry(core.New(core.Options{}))),
	)
	return err
}

func TestShippedConfigurationsStart(t *testing.T) {
	files, err := fs.Glob(manifests.All, "config/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no configurations found: %v", err)
	}
	for _, name := range files {
		t.Run(name, func(t *testing.T) {
			file, err := manifests.All.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := start(t, string(file)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConfigurationsOfUserPagesStart(t *testing.T) {
	for _, folder := range folders(t) {
		page, err := os.ReadFile(filepath.Join(folder, "README.md"))
		if err != nil {
			t.Error(err)
			continue
		}
		found := false
		for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
			if block, _, _ = strings.Cut(block, "```"); strings.Contains(block, "kind: KubeSchedulerConfiguration\n") {
				found = true
				if err := start(t, block); err != nil {
					t.Errorf("%s/README.md: %v", folder, err)
				}
			}
		}
		if !found {
			t.Errorf("%s/README.md shows no configuration", folder)
		}
	}
}

// whole is a configuration that starts. Each case takes something out of it, or puts something in.
const whole = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: batch
  plugins:
    multiPoint:
      enabled: [{name: BatchQueue}, {name: Gang}]
      disabled: [{name: DefaultPreemption}]
    queueSort:
      enabled: [{name: BatchQueue}]
      disabled: [{name: PrioritySort}]
    preFilter:
      enabled: [{name: Gang}]
    postFilter:
      enabled: [{name: Gang}]
    bind:
      enabled: [{name: Gang}]
`

func TestConfigurationsThatCannotWorkDoNotStart(t *testing.T) {
	const (
		preFilter  = "    preFilter:\n      enabled: [{name: Gang}]\n"
		bind       = "    bind:\n      enabled: [{name: Gang}]\n"
		postFilter = "    postFilter:\n      enabled: [{name: Gang}]\n"
		disabled   = "      disabled: [{name: DefaultPreemption}]\n"
	)
	for name, tc := range map[string]struct {
		// replace is put where the first is in the whole.
		replace [2]string
		// want are parts of the error, which tell what to change. None: it starts.
		want []string
	}{
		"the whole": {},
		"nobody asks the extender of the tiers about nodes": {
			[2]string{bind, bind + `  pluginConfig:
  - name: BatchQueue
    args:
      tiers: [{plugins: [{name: gang}, {name: extender, arguments: {extender.urlPrefix: 'http://x', extender.predicateVerb: p}}]}]
`},
			[]string{`profile "batch": the tiers have an extender with verbs about nodes, and plugin Extender, which asks these, is not enabled`},
		},
		"Gang runs after upstream's plugins at preFilter": {
			[2]string{preFilter, ""},
			[]string{`profile "batch": plugin Gang must be the first at preFilter, where the order is [`, ` Gang]: list it at preFilter and at multiPoint`},
		},
		"Gang runs after DefaultBinder": {
			[2]string{bind, ""},
			[]string{`profile "batch": plugin Gang must be the first at bind, where the order is [DefaultBinder Gang]: list it at bind and at multiPoint`},
		},
		"Gang runs at preFilter alone": {
			[2]string{"{name: BatchQueue}, {name: Gang}]", "{name: BatchQueue}]"},
			[]string{
				`plugin Gang must be the first at preFilter`, `plugin Gang must be the first at bind`,
				`plugin Gang is not enabled at filter: enable it at multiPoint`, `plugin Gang must be the first at postFilter`,
				`plugin Gang is not enabled at reserve`, `plugin Gang is not enabled at permit`,
			},
		},
		"pods are let through without a turn": {
			[2]string{preFilter, preFilter + "    preEnqueue:\n      disabled: [{name: BatchQueue}]\n"},
			[]string{`profile "batch": plugin Gang needs BatchQueue at preEnqueue: enable it there or at multiPoint`},
		},
		"single members of a gang evict others": {
			[2]string{disabled, ""},
			[]string{`profile "batch": plugin DefaultPreemption evicts for single pods of a gang: disable it at multiPoint or postFilter`},
		},
		"an action evicts, and nobody does that": {
			[2]string{bind, bind + "  pluginConfig: [{name: BatchQueue, args: {actions: [allocate, reclaim]}}]\n"},
			[]string{`action reclaim evicts, and plugin Reclaim, which does that, is not enabled: list it at multiPoint, before Gang, or leave the action out`},
		},
		"room could be reserved for overdue jobs, and nobody does that": {
			[2]string{bind, bind + "  pluginConfig: [{name: BatchQueue, args: {actions: [allocate], tiers: [{plugins: [{name: sla}]}, {plugins: [{name: gang}]}]}}]\n"}, nil,
		},
		"room is to be reserved, and nobody does that": {
			[2]string{bind, bind + "  pluginConfig: [{name: BatchQueue, args: {actions: [allocate], tiers: [{plugins: [{name: gang}, {name: reservation}]}]}}]\n"},
			[]string{`the tiers have reservation, and plugin Reclaim, which reserves room, is not enabled: list it at multiPoint, before Gang, or take reservation out of the tiers`},
		},
		"Reclaim comes too late": {
			[2]string{postFilter, "    postFilter:\n      enabled: [{name: Gang}, {name: Reclaim}]\n"},
			[]string{`profile "batch": plugin Gang must be the first at postFilter, behind Reclaim if that is enabled, where the order is [Gang `, `: list them so at postFilter and at multiPoint`},
		},
		"Gang runs after upstream's plugins at postFilter": {
			[2]string{postFilter, ""},
			[]string{`profile "batch": plugin Gang must be the first at postFilter, behind Reclaim if that is enabled, where the order is [DynamicResources Gang]`},
		},
		"Reclaim without an action that evicts": {
			[2]string{bind, bind + "- schedulerName: other\n  plugins:\n    queueSort:\n      enabled: [{name: BatchQueue}]\n      disabled: [{name: PrioritySort}]\n" +
				"    multiPoint:\n      enabled: [{name: BatchQueue}, {name: Reclaim}, {name: Gang}]\n      disabled: [{name: DefaultPreemption}]\n" +
				preFilter + "    postFilter:\n      enabled: [{name: Reclaim}, {name: Gang}]\n" + bind},
			nil,
		},
		"a point is switched off": {
			[2]string{preFilter, preFilter + "    reserve:\n      disabled: [{name: Gang}]\n"},
			[]string{`profile "batch": plugin Gang is not enabled at reserve: enable it at multiPoint`},
		},
		"everything that is wrong is told at once": {
			[2]string{preFilter + postFilter + bind, ""},
			[]string{`plugin Gang must be the first at preFilter`, `plugin Gang must be the first at bind`},
		},
		"arguments that cannot be meant": {
			[2]string{bind, bind + "  pluginConfig: [{name: Gang, args: {bindConcurrency: 0, reservationTimeout: 0s}}]\n"},
			[]string{`bindConcurrency: Invalid value: 0: must be at least 1`, `reservationTimeout: Invalid value: "0s": must be more than 0s and at most 15m`},
		},
		"a second profile without gangs is nobody's business": {
			[2]string{bind, bind + "- schedulerName: default-scheduler\n  plugins:\n    queueSort:\n      enabled: [{name: BatchQueue}]\n      disabled: [{name: PrioritySort}]\n"},
			nil,
		},
		"a second profile with a mistake is named": {
			[2]string{bind, bind + "- schedulerName: other\n  plugins:\n    queueSort:\n      enabled: [{name: BatchQueue}]\n      disabled: [{name: PrioritySort}]\n" +
				"    multiPoint:\n      enabled: [{name: BatchQueue}, {name: Gang}]\n      disabled: [{name: DefaultPreemption}]\n" + preFilter + postFilter},
			[]string{`profile "other": plugin Gang must be the first at bind`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(whole, tc.replace[0]) {
				t.Fatalf("%q is not in the whole", tc.replace[0])
			}
			err := start(t, strings.Replace(whole, tc.replace[0], tc.replace[1], 1))
			switch {
			case len(tc.want) == 0 && err != nil:
				t.Errorf("it does not start: %v", err)
			case len(tc.want) > 0 && err == nil:
				t.Errorf("it starts, want an error that says %q", tc.want)
			}
			for _, want := range tc.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("error is %v, want one that says %q", err, want)
				}
			}
		})
	}
}

// TestPlainPreemptionBesideABatchProfileIsWarnedOf: once for each profile, with what to change.
func TestPlainPreemptionBesideABatchProfileIsWarnedOf(t *testing.T) {
	const sorts = "    queueSort:\n      enabled: [{name: BatchQueue}]\n      disabled: [{name: PrioritySort}]\n"
	const instead = "    multiPoint:\n      enabled: [{name: GangPreemption}]\n      disabled: [{name: DefaultPreemption}]\n"
	for name, tc := range map[string]struct {
		file string
		want int
	}{
		"two such profiles":       {whole + "- schedulerName: plain\n  plugins:\n" + sorts + "- schedulerName: other\n  plugins:\n" + sorts, 2},
		"GangPreemption":          {whole + "- schedulerName: plain\n  plugins:\n" + instead + sorts, 0},
		"a batch profile alone":   {whole, 0},
		"no batch profile at all": {strings.Split(whole, "- schedulerName")[0] + "- schedulerName: plain\n  plugins:\n" + sorts, 0},
	} {
		t.Run(name, func(t *testing.T) {
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
			if err := startWith(klog.NewContext(t.Context(), logger), t, tc.file); err != nil {
				t.Fatal(err)
			}
			warned := 0
			for _, entry := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
				if strings.Contains(entry.Message, "preempt single members of gangs") {
					warned++
					if text := fmt.Sprint(entry.WithKVList, entry.ParameterKVList); !strings.Contains(text, "GangPreemption") || !strings.Contains(text, "plain") && !strings.Contains(text, "other") {
						t.Errorf("it does not say which profile, or what to change: %s", text)
					}
				}
			}
			if warned != tc.want {
				t.Errorf("%d warnings, want %d", warned, tc.want)
			}
		})
	}
}
