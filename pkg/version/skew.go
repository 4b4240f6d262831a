// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"fmt"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	kubernetes "k8s.io/component-base/version"
)

// behind is how many minor versions an API server may be behind the scheduler: those that components of Kubernetes can emulate (KEP-4330).
const behind = 3

// Kubernetes is the minor version of Kubernetes that this program is made of.
func Kubernetes() *utilversion.Version {
	return utilversion.MustParseGeneric(kubernetes.DefaultKubeBinaryVersion)
}

// OfServer is the minor version of an API server: the one that it emulates, if it does. An error says what it calls itself.
func OfServer(info *apimachineryversion.Info) (*utilversion.Version, error) {
	said := info.GitVersion
	if info.EmulationMajor != "" && info.EmulationMinor != "" {
		said = info.EmulationMajor + "." + info.EmulationMinor
	}
	v, err := utilversion.ParseGeneric(said)
	if err != nil {
		return nil, fmt.Errorf("reading the version of the API server: %w", err)
	}
	return utilversion.MajorMinor(v.Major(), v.Minor()), nil
}

// Beside is the minor version of Kubernetes as which a scheduler of version ours acts beside an API server: its own, or an older server's. Features that
// came after that are off, and what they need of the API server is not asked for. An error says that the server is too old.
func Beside(ours, server *utilversion.Version) (*utilversion.Version, error) {
	ours = utilversion.MajorMinor(ours.Major(), ours.Minor())
	oldest := ours.SubtractMinor(behind)
	switch {
	case server.LessThan(oldest):
		return nil, fmt.Errorf("the API server is Kubernetes %s, and this scheduler, of Kubernetes %s, works beside %s and newer: upgrade the cluster first", server, ours, oldest)
	case server.LessThan(ours):
		return server, nil
	}
	return ours, nil
}
