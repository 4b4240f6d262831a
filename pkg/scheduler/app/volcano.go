// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
	"github.com/caldera-scheduler/caldera/pkg/volcano/schedulerconf"
)

// volcanoFlag names Volcano's configuration file.
const volcanoFlag = "volcano-conf"

// volcano makes configurations of a volcano-scheduler.conf.
type volcano struct {
	file string
	// content is what was in it at the start.
	content []byte
	// base is what the file is set into, and baseFile where that is from: the configuration shipped for a second scheduler, or
	// that of --config.
	base     []byte
	baseFile string
	// flags are those that say how the API server is reached. Upstream leaves them out where there is a configuration file, which
	// nobody gave here.
	flags   *pflag.FlagSet
	reached *options.DeprecatedOptions
	// policies are those from outside that tiers may name.
	policies []string
}

// newVolcano reads the file, and --config if it is given.
func newVolcano(file, configFile string) (*volcano, error) {
	v := &volcano{file: file, baseFile: configFile}
	var err error
	if v.content, err = os.ReadFile(file); err != nil {
		return nil, fmt.Errorf("reading --%s: %w", volcanoFlag, err)
	}
	if configFile == "" {
		return v, nil
	}
	if v.base, err = os.ReadFile(configFile); err != nil {
		return nil, fmt.Errorf("reading --config: %w", err)
	}
	return v, nil
}

// translate sets what is in the file into the base. An error tells all that is wrong with it.
func (v *volcano) translate(data []byte) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	if profile.IsConfiguration(data) {
		return nil, fmt.Errorf("--%s: %s is a KubeSchedulerConfiguration: give it with --config", volcanoFlag, v.file)
	}
	args, err := schedulerconf.Parse(data, v.policies...)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", v.file, err)
	}
	base, err := profile.Second.Config()
	if v.base != nil {
		base, err = profile.Decode(v.baseFile, v.base)
	}
	if err != nil {
		return nil, err
	}
	if v.base == nil && v.flags != nil {
		v.reach(&base.ClientConnection)
	}
	return base, profile.SetVolcano(v.file, base, args)
}

// reach sets how the API server is reached as far as flags say it.
func (v *volcano) reach(c *componentbaseconfig.ClientConnectionConfiguration) {
	if v.flags.Changed("kubeconfig") {
		c.Kubeconfig = v.reached.Kubeconfig
	}
	if v.flags.Changed("kube-api-content-type") {
		c.ContentType = v.reached.ContentType
	}
	if v.flags.Changed("kube-api-qps") {
		c.QPS = v.reached.QPS
	}
	if v.flags.Changed("kube-api-burst") {
		c.Burst = v.reached.Burst
	}
}

// again is translate for a scheduler that runs: with all defaults, as upstream's set-up gives them to the first configuration.
func (v *volcano) again(data []byte) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	c, err := v.translate(data)
	if err != nil {
		return nil, err
	}
	encoded, err := profile.Encode(c)
	if err != nil {
		return nil, err
	}
	return profile.Decode(v.file, encoded)
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
