// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"slices"
	"strings"
)

// Job reads the name of a job: NAME in the namespace that the flags say, or NAMESPACE/NAME.
func (f *Flags) Job(arg string) (namespace, name string, err error) {
	parts := strings.Split(arg, "/")
	if len(parts) > 2 || slices.Contains(parts, "") {
		return "", "", fmt.Errorf("the job is %q: write NAME or NAMESPACE/NAME", arg)
	}
	if len(parts) == 2 {
		return parts[0], parts[1], nil
	}
	namespace, _, err = f.ToRawKubeConfigLoader().Namespace()
	return namespace, arg, err
}
