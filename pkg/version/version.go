// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version says which Caldera this is. The version of Kubernetes that clients are told is another one (k8s.io/component-base/version).
package version

import (
	"cmp"
	"runtime/debug"
	"sync"
)

// module is Caldera as other modules require it.
const module = "github.com/caldera-scheduler/caldera"

// unknown is the version of a program that was built without its repository.
const unknown = "unknown"

// Get returns the version of Caldera that the program was built from: a tag, or a pseudo-version with the time and the start of the commit.
var Get = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return cmp.Or(dependency.Version, unknown)
		}
	}
	if info.Main.Path != module || info.Main.Version == "(devel)" {
		return unknown
	}
	return cmp.Or(info.Main.Version, unknown)
})
