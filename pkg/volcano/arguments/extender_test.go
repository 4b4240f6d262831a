// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

func TestDecodeExtender(t *testing.T) {
	with := func(change func(*arguments.Extender)) arguments.Extender {
		e := arguments.Extender{Args: config.ExtenderArgs{HTTPTimeout: metav1.Duration{Duration: time.Second}, MaxScore: 100}}
		if change != nil {
			change(&e)
		}
		return e
	}
	run(t, "extender", arguments.DecodeExtender, map[string]decodes[arguments.Extender]{
		"nothing given": {"{}", with(nil), nil},
		"all": {
			`{extender.urlPrefix: 'http://127.0.0.1:8080/v1/', extender.httpTimeout: 100ms, extender.ignorable: 'true', extender.maxScore: 1000,
			extender.managedResources: [nvidia.com/gpu, x.com/y], extender.predicateVerb: a, extender.prioritizeVerb: b, extender.allocateFuncVerb: c,
			extender.deallocateFuncVerb: d, extender.onSessionOpenVerb: e, extender.onSessionCloseVerb: f, extender.preemptableVerb: g,
			extender.reclaimableVerb: h, extender.jobEnqueueableVerb: i, extender.jobEnqueuedVerb: j, extender.queueOverusedVerb: k,
			extender.jobReadyVerb: l}`,
			arguments.Extender{
				Args: config.ExtenderArgs{
					URLPrefix: "http://127.0.0.1:8080/v1/", HTTPTimeout: metav1.Duration{Duration: 100 * time.Millisecond}, Ignorable: true, MaxScore: 1000,
					ManagedResources: []string{"nvidia.com/gpu", "x.com/y"}, PredicateVerb: "a", PrioritizeVerb: "b", AllocateFuncVerb: "c", DeallocateFuncVerb: "d",
				},
				OnSessionOpenVerb: "e", OnSessionCloseVerb: "f", PreemptableVerb: "g", ReclaimableVerb: "h", JobEnqueueableVerb: "i", JobEnqueuedVerb: "j",
				QueueOverusedVerb: "k", JobReadyVerb: "l",
			},
			nil,
		},
		"TLS": {
			"{extender.urlPrefix: 'https://x', extender.tlsConfig: {serverName: x.svc, caFile: /tls/ca.crt, certFile: /tls/tls.crt, keyFile: /tls/tls.key}}",
			with(func(e *arguments.Extender) {
				e.Args.URLPrefix = "https://x"
				e.Args.TLSConfig = config.ExtenderTLSConfig{ServerName: "x.svc", CAFile: "/tls/ca.crt", CertFile: "/tls/tls.crt", KeyFile: "/tls/tls.key"}
			}), nil,
		},
		"TLS that cannot be": {
			"{extender.urlPrefix: 'http://x', extender.tlsConfig: {insecure: true, caFile: a, certFile: b, key: c}}",
			with(func(e *arguments.Extender) {
				e.Args.URLPrefix, e.Args.TLSConfig = "http://x", config.ExtenderTLSConfig{Insecure: true, CAFile: "a", CertFile: "b"}
			}),
			[]string{
				`plugins[0].arguments[extender.tlsConfig][key]: Forbidden: unknown key; valid are "caFile", "certFile", "insecure", "keyFile", "serverName"`,
				`plugins[0].arguments[extender.tlsConfig]: Forbidden: the extender is asked by plain http: write https into the URL, or leave this out`,
				`plugins[0].arguments[extender.tlsConfig].keyFile: Required value: it goes with certFile: name the file with its key`,
				`plugins[0].arguments[extender.tlsConfig].insecure: Invalid value: true: must be false with caFile: the one has no certificate checked, the other says by what`,
			},
		},
		"TLS is a map": {
			"{extender.tlsConfig: true}", with(nil), []string{`plugins[0].arguments[extender.tlsConfig]: Invalid value: true: must be a map`},
		},
		"verbs without a URL": {
			"{extender.jobReadyVerb: ready}", with(func(e *arguments.Extender) { e.JobReadyVerb = "ready" }),
			[]string{`plugins[0].arguments[extender.urlPrefix]: Required value: verbs are given: write where the extender is, such as http://extender.example.com:8080/v1`},
		},
		"everything is wrong": {
			`{extender.urlPrefix: 'extender:8080', extender.httpTimeout: '1', extender.ignorable: maybe, extender.maxScore: 0, extender.managedResources: nvidia.com/gpu,
			extender.predicateVerb: [a], extender.predicatVerb: a}`, with(func(e *arguments.Extender) { e.Args.URLPrefix = "" }),
			[]string{
				`plugins[0].arguments[extender.urlPrefix]: Invalid value: "extender:8080": must be a URL with http or https and a host, without a query, such as http://extender.example.com:8080/v1`,
				`plugins[0].arguments[extender.httpTimeout]: Invalid value: "1": must be a duration with its unit, such as "10m"`,
				`plugins[0].arguments[extender.ignorable]: Invalid value: "maybe": must be true or false`,
				`plugins[0].arguments[extender.managedResources]: Invalid value: "nvidia.com/gpu": must be a list of names of resources, such as ["nvidia.com/gpu"]`,
				`plugins[0].arguments[extender.maxScore]: Invalid value: 0: must be a whole number from 1 to 1000000`,
				`plugins[0].arguments[extender.predicateVerb]: Invalid value: ["a"]: must be a text`,
				`plugins[0].arguments[extender.predicatVerb]: Forbidden: unknown key; did you mean "extender.predicateVerb"?`,
			},
		},
	})
}

func TestSwitchesOfAnExtenderTurnVerbsOff(t *testing.T) {
	entry := &config.TierPlugin{
		Name:      "extender",
		Arguments: values(t, "{extender.urlPrefix: 'http://x', extender.predicateVerb: a, extender.prioritizeVerb: b, extender.jobReadyVerb: c, extender.queueOverusedVerb: d}"),
		Switches:  map[config.Switch]bool{config.EnablePredicate: false, config.EnableJobReady: false, config.EnableOverused: false},
	}
	got, errs := arguments.DecodeExtender(entry, field.NewPath("plugins").Index(0))
	if len(errs) > 0 || got.Args.PredicateVerb != "" || got.Args.PrioritizeVerb != "b" || got.Votes() || !got.Places() {
		t.Errorf("got %+v, %v", got, errs)
	}
}
