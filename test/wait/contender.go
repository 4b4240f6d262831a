// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/harm"
)

// contender is one of the schedulers measured.
type contender struct {
	name, about string
	// batch: it is given pods of the batch profile, and PodGroups; otherwise plain pods, of which a gang has as many.
	batch bool
	// stock: it is upstream's, and takes no configuration of ours.
	stock  bool
	binary string
}

// known returns the contenders that have a name.
func known() []contender {
	return []contender{
		{name: "caldera", about: "batch pods, gangs by Volcano's PodGroups", batch: true},
		{name: "plain", about: "Caldera's profile default-scheduler: plain pods without groups"},
		{name: "stock", about: "upstream's kube-scheduler: plain pods without groups", stock: true},
	}
}

const stockPackage = "k8s.io/kubernetes/cmd/kube-scheduler"

// describeContenders lists the contenders for people.
func describeContenders() string {
	var lines strings.Builder
	for _, c := range known() {
		fmt.Fprintf(&lines, "  %-9s %s\n", c.name, c.about)
	}
	return lines.String()
}

func parseContenders(said []string) ([]contender, error) {
	var list []contender
	for _, s := range said {
		c, err := parseContender(s)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(o contender) bool { return o.name == c.name }) {
			return nil, fmt.Errorf("--contenders has %q twice", c.name)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("--contenders is empty: use\n%s", describeContenders())
	}
	return list, nil
}

// parseContender reads one value of --contenders.
func parseContender(said string) (contender, error) {
	name, path, other := strings.Cut(said, "=")
	if !other {
		all := known()
		i := slices.IndexFunc(all, func(c contender) bool { return c.name == said })
		if i < 0 {
			return contender{}, fmt.Errorf("--contenders has %q, which there is not: use\n%sor NAME=PATH, or NAME:plain=PATH", said, describeContenders())
		}
		return all[i], nil
	}
	name, pods, kinded := strings.Cut(name, ":")
	if name == "" || path == "" || kinded && pods != "plain" {
		return contender{}, fmt.Errorf("--contenders has %q: write NAME=PATH for a build of Caldera, or NAME:plain=PATH for another kube-scheduler", said)
	}
	if _, err := os.Stat(path); err != nil {
		return contender{}, fmt.Errorf("--contenders has %q: %w", said, err)
	}
	return contender{name: name, about: path, batch: !kinded, stock: kinded, binary: path}, nil
}

// build makes the programs.
func (p *plan) build(ctx context.Context, progress io.Writer) error {
	fmt.Fprintln(progress, "building localcluster and the schedulers (a first build takes minutes)")
	if _, err := localcluster.Build(ctx); err != nil {
		return err
	}
	for i := range p.contenders {
		if err := p.contenders[i].build(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *contender) build(ctx context.Context) (err error) {
	if c.binary != "" {
		return nil
	}
	dir, err := filepath.Abs(filepath.Join("_output", "bin"))
	if err != nil {
		return err
	}
	if !c.stock {
		c.binary, err = schedulerprocess.Build(ctx, dir)
		return err
	}
	c.binary = filepath.Join(dir, "stock-kube-scheduler")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", c.binary, stockPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s: %w", stockPackage, err)
	}
	return nil
}

// config returns the configuration the contender runs with, with an extender if there is one.
func (c contender) config(extender *harm.Extender) ([]byte, error) {
	config := map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
	if !c.stock {
		shipped, err := manifests.All.ReadFile("config/scheduler-config.yaml")
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(shipped, &config); err != nil {
			return nil, fmt.Errorf("reading the shipped configuration: %w", err)
		}
	}
	if extender != nil {
		config["extenders"] = []any{map[string]any{
			"urlPrefix": extender.URL(), "filterVerb": "filter", "httpTimeout": "1s", "nodeCacheCapable": true,
			"managedResources": []any{map[string]any{"name": licence}},
		}}
	}
	return yaml.Marshal(config)
}
