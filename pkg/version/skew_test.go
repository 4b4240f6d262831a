// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"strings"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"

	"github.com/caldera-scheduler/caldera/pkg/version"
)

func TestAsWhichVersionASchedulerActs(t *testing.T) {
	for name, tc := range map[string]struct {
		server apimachineryversion.Info
		want   string
		err    string
	}{
		"its own":                         {server: apimachineryversion.Info{GitVersion: "v1.37.2"}, want: "1.37"},
		"a newer server":                  {server: apimachineryversion.Info{GitVersion: "v1.38.0-beta.0"}, want: "1.37"},
		"an older server":                 {server: apimachineryversion.Info{GitVersion: "v1.36.3"}, want: "1.36"},
		"the oldest server":               {server: apimachineryversion.Info{GitVersion: "v1.34.0"}, want: "1.34"},
		"one of a provider":               {server: apimachineryversion.Info{GitVersion: "v1.35.4-gke.1200+b2"}, want: "1.35"},
		"one that acts as an older":       {server: apimachineryversion.Info{GitVersion: "v1.37.1", EmulationMajor: "1", EmulationMinor: "35"}, want: "1.35"},
		"one that acts as itself":         {server: apimachineryversion.Info{GitVersion: "v1.37.1", EmulationMajor: "1", EmulationMinor: "37"}, want: "1.37"},
		"one that is too old":             {server: apimachineryversion.Info{GitVersion: "v1.33.13"}, err: "the API server is Kubernetes 1.33, and this scheduler, of Kubernetes 1.37, works beside 1.34 and newer"},
		"one that says nothing of itself": {err: "reading the version of the API server"},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := version.OfServer(&tc.server)
			var acts *utilversion.Version
			if err == nil {
				acts, err = version.Beside(utilversion.MustParseGeneric("v1.37.1"), server)
			}
			switch {
			case tc.err != "":
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
			case err != nil:
				t.Error(err)
			case acts.String() != tc.want:
				t.Errorf("it acts as %s, want %s", acts, tc.want)
			}
		})
	}
}

// TestWhatUpstreamCanEmulate: as many versions as we say.
func TestWhatUpstreamCanEmulate(t *testing.T) {
	ours := version.Kubernetes()
	for minor, possible := range map[uint]bool{0: true, 3: true, 4: false} {
		server := ours.SubtractMinor(minor)
		effective := compatibility.DefaultBuildEffectiveVersion()
		effective.SetEmulationVersion(server)
		if errs := effective.Validate(); len(errs) == 0 != possible {
			t.Errorf("upstream says of emulating %s: %v", server, errs)
		}
		if _, err := version.Beside(ours, server); err == nil != possible {
			t.Errorf("we say of a server of version %s: %v", server, err)
		}
	}
}
