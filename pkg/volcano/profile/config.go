// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "k8s.io/kube-scheduler/config/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	// The plugins' arguments are part of the configuration's scheme.
	_ "github.com/caldera-scheduler/caldera/pkg/apis/config/scheme"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/volcano/schedulerconf"
)

// Shipped names a configuration that Caldera ships.
type Shipped string

// The shipped configurations.
const (
	// Only is the cluster's only scheduler, for ordinary pods too.
	Only Shipped = "config/scheduler-config.yaml"
	// Second is one beside the cluster's kube-scheduler, for batch pods.
	Second Shipped = "config/volcano-only.yaml"
)

// Config reads a shipped configuration.
func (s Shipped) Config() (*schedulerconfig.KubeSchedulerConfiguration, error) {
	data, err := manifests.All.ReadFile(string(s))
	if err != nil {
		return nil, fmt.Errorf("reading the shipped configuration: %w", err)
	}
	return Decode(string(s), data)
}

// Read reads a KubeSchedulerConfiguration, or a volcano-scheduler.conf, which goes into a shipped configuration. What it is
// follows from its content; name is for messages. The tiers of the latter may name policies from outside.
func Read(name string, data []byte, into Shipped, outside ...string) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	if IsConfiguration(data) {
		return Decode(name, data)
	}
	args, err := schedulerconf.Parse(data, outside...)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	c, err := into.Config()
	if err != nil {
		return nil, err
	}
	return c, SetVolcano(name, c, args)
}

// IsConfiguration reports whether a file says that it is an object of Kubernetes, which a volcano-scheduler.conf does not.
func IsConfiguration(data []byte) bool {
	var meta metav1.TypeMeta
	return yaml.Unmarshal(data, &meta) == nil && meta.Kind != ""
}

// SetVolcano makes the profiles of a configuration what a volcano-scheduler.conf says: those with the plugin Gang. The queue
// is the same in all profiles, but ordinary pods are placed as before. Name is for messages.
func SetVolcano(name string, c *schedulerconfig.KubeSchedulerConfiguration, args *config.BatchQueueArgs) error {
	batch := 0
	for i := range c.Profiles {
		p := &c.Profiles[i]
		if !has(p, names.Gang) {
			SetTiers(p, args)
			continue
		}
		batch++
		if err := Apply(p, args); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
	}
	if batch == 0 {
		return fmt.Errorf("no profile has the plugin %s at multiPoint: %s has no profile to say something about", names.Gang, name)
	}
	return validate(name, c)
}

// Decode reads a configuration as kube-scheduler does: strictly, with defaults.
func Decode(name string, data []byte) (*schedulerconfig.KubeSchedulerConfiguration, error) {
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

// Encode writes a configuration as YAML, with all defaults.
func Encode(c *schedulerconfig.KubeSchedulerConfiguration) ([]byte, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeYAML)
	if !ok {
		return nil, fmt.Errorf("encoding the configuration: no serializer for %s", runtime.ContentTypeYAML)
	}
	var out bytes.Buffer
	if err := scheme.Codecs.EncoderForVersion(info.Serializer, v1.SchemeGroupVersion).Encode(c, &out); err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	return out.Bytes(), nil
}
