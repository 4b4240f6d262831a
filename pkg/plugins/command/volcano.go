// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/apis/config/volcanoconf"
	"github.com/caldera-scheduler/caldera/pkg/profile"
)

// volcanoFlag names Volcano's configuration file.
const volcanoFlag = "volcano-conf"

// translated is the configuration of the scheduler with what a volcano-scheduler.conf says: that of --config, or the one that is
// shipped for a second scheduler.
func translated(configFile, volcanoFile string) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	data, err := os.ReadFile(volcanoFile)
	if err != nil {
		return nil, fmt.Errorf("reading --%s: %w", volcanoFlag, err)
	}
	if profile.IsConfiguration(data) {
		return nil, fmt.Errorf("--%s: %s is a KubeSchedulerConfiguration: give it with --config", volcanoFlag, volcanoFile)
	}
	args, err := volcanoconf.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", volcanoFile, err)
	}
	base, err := profile.Second.Config()
	if configFile != "" {
		var file []byte
		if file, err = os.ReadFile(configFile); err != nil {
			return nil, fmt.Errorf("reading --config: %w", err)
		}
		base, err = profile.Decode(configFile, file)
	}
	if err != nil {
		return nil, err
	}
	return base, profile.SetVolcano(volcanoFile, base, args)
}

// asFile lets upstream's set-up, which reads its configuration from a file, read it from memory: the root file system of a
// container may be read-only. The path can be read once.
func asFile(c *schedulerconfig.KubeSchedulerConfiguration) (path string, closeFile func(), err error) {
	data, err := profile.Encode(c)
	if err != nil {
		return "", nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", nil, fmt.Errorf("handing the configuration on: %w", err)
	}
	go func() {
		// Nobody reads on if the set-up fails before; then the process ends.
		_, _ = w.Write(data)
		_ = w.Close()
	}()
	return fmt.Sprintf("/dev/fd/%d", r.Fd()), func() { _ = r.Close() }, nil
}
