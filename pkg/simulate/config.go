// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/manifests"
	// The plugins' arguments are part of the configuration's scheme.
	_ "github.com/caldera-scheduler/caldera/pkg/apis/config/scheme"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/volcanoconf"
	"github.com/caldera-scheduler/caldera/pkg/profile"
)

// shipped is the configuration that a volcano-scheduler.conf is applied to, and that is used without any.
const shipped = "config/scheduler-config.yaml"

// DefaultConfig is the configuration that Caldera ships.
func DefaultConfig() (*schedulerconfig.KubeSchedulerConfiguration, error) {
	data, err := manifests.All.ReadFile(shipped)
	if err != nil {
		return nil, fmt.Errorf("reading the shipped configuration: %w", err)
	}
	return decodeConfig(shipped, data)
}

// ReadConfig reads a KubeSchedulerConfiguration, or a volcano-scheduler.conf, which goes into the shipped
// configuration. What it is follows from its content; name is for messages.
func ReadConfig(name string, data []byte) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(data, &meta); err == nil && meta.Kind != "" {
		return decodeConfig(name, data)
	}
	args, err := volcanoconf.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	c, err := DefaultConfig()
	if err != nil {
		return nil, err
	}
	for i := range c.Profiles {
		p := &c.Profiles[i]
		if p.SchedulerName == corev1.DefaultSchedulerName {
			// Ordinary pods are placed as by kube-scheduler; the queue is the same in all profiles.
			profile.SetTiers(p, args)
		} else if err := profile.Apply(p, args); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return c, validate(name, c)
}

// decodeConfig reads a configuration as kube-scheduler does: strictly, with defaults.
func decodeConfig(name string, data []byte) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	o, gvk, err := scheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	c, ok := o.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("reading %s: it is a %s, want a KubeSchedulerConfiguration or a volcano-scheduler.conf", name, gvk.Kind)
	}
	// The decoder clears it, and the scheduler asks for it.
	c.APIVersion = gvk.GroupVersion().String()
	return c, validate(name, c)
}

// validate checks a configuration as kube-scheduler does.
func validate(name string, c *schedulerconfig.KubeSchedulerConfiguration) error {
	if err := validation.ValidateKubeSchedulerConfiguration(c); err != nil {
		return fmt.Errorf("checking %s: %w", name, err)
	}
	return nil
}
