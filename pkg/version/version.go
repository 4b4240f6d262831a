// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version says which Caldera this is. The version of Kubernetes that clients are told is another one (k8s.io/component-base/version).
package version

import (
	"cmp"
	"runtime/debug"
	"sync"
)

const (
	// module is the path of ours, in a program of ours or of others.
	module = "github.com/caldera-scheduler/caldera"
	// unknown is the version of a program that was built without its repository.
	unknown = "(devel)"
)

// Get returns the version of Caldera that the program was built from: a tag, or a pseudo-version with the time and the start of the commit.
var Get = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return in(info)
})

// in is the version of our module in a program: that of the program itself, or of what it is made with.
func in(info *debug.BuildInfo) string {
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
