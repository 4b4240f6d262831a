// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/manifests"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/volcano/schedulerconf"
)

// builtIn are the configurations that --conf knows by name: queues share by weight, or by what their objects say.
var builtIn = map[string]string{
	"shares": `
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`,
	"capacity": `
actions: "enqueue, allocate, gangpreempt, gangreclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
`,
}

// conf is what the scheduler runs by.
type conf struct {
	name string
	// scheduler is the shipped KubeSchedulerConfiguration with other queues and tiers.
	scheduler []byte
	// byObject is set when queues deserve what their objects say.
	byObject bool
}

// readConf reads a configuration by its name or from a file.
func readConf(name string) (conf, error) {
	data := []byte(builtIn[name])
	if len(data) == 0 {
		var err error
		if data, err = os.ReadFile(name); err != nil {
			return conf{}, fmt.Errorf("reading --conf, which is neither shares nor capacity: %w", err)
		}
	}
	c := conf{name: name}
	args, err := schedulerconf.Parse(data)
	if err != nil {
		return c, fmt.Errorf("reading %s: %w", name, err)
	}
	for _, tier := range args.Tiers {
		for _, p := range tier.Plugins {
			c.byObject = c.byObject || p.Name == "capacity"
		}
	}
	written := &v1.BatchQueueArgs{}
	if err := v1.Convert_config_BatchQueueArgs_To_v1_BatchQueueArgs(args, written, nil); err != nil {
		return c, fmt.Errorf("converting %s: %w", name, err)
	}
	written.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind(names.BatchQueue + "Args"))
	c.scheduler, err = withArgs(written)
	return c, err
}

// withArgs gives all profiles of the shipped configuration these arguments of BatchQueue.
func withArgs(args *v1.BatchQueueArgs) ([]byte, error) {
	shipped, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the shipped configuration: %w", err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(shipped, &config); err != nil {
		return nil, fmt.Errorf("reading the shipped configuration: %w", err)
	}
	encoded, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encoding the arguments of BatchQueue: %w", err)
	}
	profiles, _ := config["profiles"].([]any)
	for _, p := range profiles {
		if profile, ok := p.(map[string]any); ok {
			others, _ := profile["pluginConfig"].([]any)
			profile["pluginConfig"] = append(others, map[string]any{"name": names.BatchQueue, "args": json.RawMessage(encoded)})
		}
	}
	return yaml.Marshal(config)
}
