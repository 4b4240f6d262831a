// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
)

func TestExtenderArgs(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*config.ExtenderArgs)
		want   string
	}{
		"a verb and a URL will do":          {func(*config.ExtenderArgs) {}, ""},
		"a URL needs a scheme":              {func(a *config.ExtenderArgs) { a.URLPrefix = "x:80" }, `args.urlPrefix: Invalid value: "x:80": must be a URL with http or https and a host, without a query, such as http://extender.example.com:8080/v1`},
		"a timeout of 0 is none":            {func(a *config.ExtenderArgs) { a.HTTPTimeout.Duration = 0 }, `args.httpTimeout: Invalid value: "0s": must be more than 0s`},
		"without verbs it does nothing":     {func(a *config.ExtenderArgs) { a.PredicateVerb = "" }, "args.predicateVerb: Required value: the plugin asks nothing: give at least one verb, or leave it out"},
		"the greatest score is at least 1":  {func(a *config.ExtenderArgs) { a.MaxScore = 0 }, "args.maxScore: Invalid value: 0: must be from 1 to 1000000"},
		"a key goes with a certificate":     {func(a *config.ExtenderArgs) { a.TLSConfig.KeyFile = "k" }, "args.tlsConfig.certFile: Required value: it goes with keyFile: name the file with its certificate"},
		"TLS goes with https":               {func(a *config.ExtenderArgs) { a.URLPrefix, a.TLSConfig.CAFile = "http://x", "c" }, "args.tlsConfig: Forbidden: the extender is asked by plain http: write https into the URL, or leave this out"},
		"a managed resource without a name": {func(a *config.ExtenderArgs) { a.ManagedResources = []string{"a", ""} }, "args.managedResources[1]: Required value: name a resource, such as nvidia.com/gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			args := &config.ExtenderArgs{URLPrefix: "https://x/y", HTTPTimeout: metav1.Duration{Duration: time.Second}, PredicateVerb: "p", MaxScore: 1}
			tc.change(args)
			got := ""
			if err := validation.ValidateExtenderArgs(field.NewPath("args"), args); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
