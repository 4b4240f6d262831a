// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"runtime"

	"k8s.io/component-base/metrics"
	kubernetes "k8s.io/component-base/version"

	"github.com/caldera-scheduler/caldera/pkg/version"
)

var build = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Subsystem: "caldera", Name: "build_info", StabilityLevel: metrics.ALPHA,
	Help: "1, with the version of Caldera, that of Kubernetes, and that of Go.",
}, []string{"version", "kubernetes", "go"})

// showBuild sets the one series of the build.
func showBuild() {
	build.WithLabelValues(version.Get(), kubernetes.Get().GitVersion, runtime.Version()).Set(1)
}
