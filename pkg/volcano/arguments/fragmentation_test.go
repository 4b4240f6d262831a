// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

func TestDecodeFragmentation(t *testing.T) {
	standard := arguments.Fragmentation{Weight: 10, Args: config.FragmentationArgs{
		Resource: "nvidia.com/gpu", ModelLabel: "nvidia.com/gpu.product", HalfLife: metav1.Duration{Duration: 168 * time.Hour},
	}}
	run(t, "fragmentation", arguments.DecodeFragmentation, map[string]decodes[arguments.Fragmentation]{
		"nothing given": {"{}", standard, nil},
		"all given": {
			"{fragmentation.weight: 0, fragmentation.resource: amd.com/gpu, fragmentation.modelLabel: model, fragmentation.halfLife: 24h}",
			arguments.Fragmentation{Args: config.FragmentationArgs{Resource: "amd.com/gpu", ModelLabel: "model", HalfLife: metav1.Duration{Duration: 24 * time.Hour}}},
			nil,
		},
		"a weight below 0": {"fragmentation.weight: -1", standard, invalid("fragmentation.weight", "-1", "must be a whole number from 0 to 1000000")},
		"seconds":          {"fragmentation.halfLife: 30s", standard, invalid("fragmentation.halfLife", `"30s"`, "must be at least 1m0s")},
		"no unit":          {"fragmentation.halfLife: 7", standard, invalid("fragmentation.halfLife", "7", `must be a duration with its unit, such as "10m"`)},
	})
}
