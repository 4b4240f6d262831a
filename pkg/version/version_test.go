// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"
)

func TestTheVersionIsThatOfOurModule(t *testing.T) {
	for name, tc := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"nothing is known":              {nil, "(devel)"},
		"it is the program":             {&debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.2.3"}}, "v1.2.3"},
		"it is the program of a test":   {&debug.BuildInfo{Main: debug.Module{Path: module}}, "(devel)"},
		"it is part of another program": {&debug.BuildInfo{Main: debug.Module{Path: "example.com/p", Version: "v9"}, Deps: []*debug.Module{{Path: "k8s.io/api", Version: "v8"}, {Path: module, Version: "v1.2.3"}}}, "v1.2.3"},
	} {
		if got := in(tc.info); got != tc.want {
			t.Errorf("%s: version %s, want %s", name, got, tc.want)
		}
	}
}
