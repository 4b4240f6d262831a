// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"errors"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// Fragmentation are the arguments of the plugin fragmentation.
type Fragmentation struct {
	// Weight is how much the score counts; at least 0, which turns it off.
	Weight int64
	// Args are without cards, of which the plugin deviceshare tells.
	Args config.FragmentationArgs
}

// DecodeFragmentation reads the arguments of the plugin fragmentation; path is that of the plugin's entry.
func DecodeFragmentation(p *config.TierPlugin, path *field.Path) (Fragmentation, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	decoded := Fragmentation{
		Weight: weight(d, "fragmentation.weight", 10),
		Args: config.FragmentationArgs{
			Resource:   value(d, "fragmentation.resource", config.DefaultGPUResource, qualifiedName),
			ModelLabel: value(d, "fragmentation.modelLabel", config.DefaultGPUModelLabel, qualifiedName),
			HalfLife:   metav1.Duration{Duration: value(d, "fragmentation.halfLife", config.DefaultHalfLife, halfLife)},
		},
	}
	return decoded, d.finish(p.Name)
}

func halfLife(v runtime.RawExtension) (time.Duration, error) {
	return duration(config.ShortestHalfLife, "at least "+config.ShortestHalfLife.String())(v)
}

// qualifiedName parses the name of a resource or of a label.
func qualifiedName(v runtime.RawExtension) (string, error) {
	name := scalar(v)
	if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
		return "", errors.New(strings.Join(wrong, "; "))
	}
	return name, nil
}
