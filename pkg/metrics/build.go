// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/version"
)

// module is the path of ours, in a program of ours or of others.
const module = "github.com/caldera-scheduler/caldera"

var build = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Subsystem: "caldera", Name: "build_info", StabilityLevel: metrics.ALPHA,
	Help: "1, with the version of Caldera, that of Kubernetes, and that of Go.",
}, []string{"version", "kubernetes", "go"})

// showBuild sets the one series of the build.
func showBuild() {
	info, _ := debug.ReadBuildInfo()
	build.WithLabelValues(versionIn(info), version.Get().GitVersion, runtime.Version()).Set(1)
}

// versionIn is the version of our module in a program: that of the program itself, or of what it is made with.
func versionIn(info *debug.BuildInfo) string {
	const unknown = "(devel)"
	if info == nil {
		return unknown
	}
	of := info.Main.Version
	for _, m := range info.Deps {
		if m.Path == module {
			of = m.Version
		}
	}
	return cmp.Or(of, unknown)
}
