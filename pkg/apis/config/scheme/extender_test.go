// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
)

func TestWhatKubeSchedulerReadsAboutExtenders(t *testing.T) {
	testReads(t, "Extender", map[string]reads{
		"Extender with the least": {
			"  pluginConfig: [{name: Extender, args: {urlPrefix: 'http://x', predicateVerb: p}}]",
			&config.ExtenderArgs{URLPrefix: "http://x", PredicateVerb: "p", HTTPTimeout: metav1.Duration{Duration: time.Second}, MaxScore: 100},
		},
		"Extender with all": {
			"  pluginConfig: [{name: Extender, args: {urlPrefix: 'http://x', httpTimeout: 2s, predicateVerb: p, prioritizeVerb: q, allocateFuncVerb: r, deallocateFuncVerb: s, ignorable: true, managedResources: [x.com/y], maxScore: 7, tlsConfig: {insecure: true, serverName: a, certFile: b, keyFile: c, caFile: d}}}]",
			&config.ExtenderArgs{
				URLPrefix: "http://x", PredicateVerb: "p", PrioritizeVerb: "q", AllocateFuncVerb: "r", DeallocateFuncVerb: "s",
				HTTPTimeout: metav1.Duration{Duration: 2 * time.Second}, Ignorable: true, ManagedResources: []string{"x.com/y"}, MaxScore: 7,
				TLSConfig: config.ExtenderTLSConfig{Insecure: true, ServerName: "a", CertFile: "b", KeyFile: "c", CAFile: "d"},
			},
		},
	})
	testRefuses(t, "Extender", map[string]refuses{"a verb about jobs, which goes to the tiers": {"{jobReadyVerb: r}", `unknown field "jobReadyVerb"`}})
}

func TestArgsOfExtendersSurviveConversion(t *testing.T) {
	words := rapid.StringMatching(`[a-z]{0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		args := &config.ExtenderArgs{
			URLPrefix: words.Draw(t, "url"), HTTPTimeout: metav1.Duration{Duration: time.Duration(rapid.Int64().Draw(t, "timeout"))},
			PredicateVerb: words.Draw(t, "p"), PrioritizeVerb: words.Draw(t, "q"), AllocateFuncVerb: words.Draw(t, "r"), DeallocateFuncVerb: words.Draw(t, "s"),
			TLSConfig: config.ExtenderTLSConfig{
				Insecure: rapid.Bool().Draw(t, "insecure"), ServerName: words.Draw(t, "server"),
				CertFile: words.Draw(t, "cert"), KeyFile: words.Draw(t, "key"), CAFile: words.Draw(t, "ca"),
			},
			Ignorable: rapid.Bool().Draw(t, "ignorable"), ManagedResources: rapid.SliceOfN(words, 1, 3).Draw(t, "managed"), MaxScore: rapid.Int64().Draw(t, "score"),
		}
		survives(t, args, &v1.ExtenderArgs{}, &config.ExtenderArgs{})
	})
}
