// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// Extender are the arguments of the plugin extender. The switches of its entry that are off have emptied the verbs that
// they turn off.
type Extender struct {
	// Args are the URL, what holds for all calls, and the verbs about nodes.
	Args config.ExtenderArgs
	// OnSessionOpenVerb tells everything there is, every second.
	OnSessionOpenVerb string
	// OnSessionCloseVerb is asked a second later.
	OnSessionCloseVerb string
	// PreemptableVerb asks who may be evicted for a job of the same queue.
	PreemptableVerb string
	// ReclaimableVerb asks who may be evicted for a job of another queue.
	ReclaimableVerb string
	// JobEnqueueableVerb asks whether a job is let in.
	JobEnqueueableVerb string
	// JobEnqueuedVerb tells that a job was let in.
	JobEnqueuedVerb string
	// QueueOverusedVerb asks whether a queue has enough.
	QueueOverusedVerb string
	// JobReadyVerb asks whether a job may start.
	JobReadyVerb string
}

// Votes reports whether any question about queues and jobs is asked.
func (e *Extender) Votes() bool {
	return slices.ContainsFunc(e.votes(), func(verb *string) bool { return *verb != "" })
}

// Places reports whether any question about nodes is asked.
func (e *Extender) Places() bool {
	return e.Args.PredicateVerb+e.Args.PrioritizeVerb+e.Args.AllocateFuncVerb+e.Args.DeallocateFuncVerb != ""
}

func (e *Extender) votes() []*string {
	return []*string{
		&e.OnSessionOpenVerb, &e.OnSessionCloseVerb, &e.PreemptableVerb, &e.ReclaimableVerb, &e.JobEnqueueableVerb,
		&e.JobEnqueuedVerb, &e.QueueOverusedVerb, &e.JobReadyVerb,
	}
}

// DecodeExtender reads the arguments and switches of the plugin extender; path is that of the plugin's entry. Volcano takes
// one second for a timeout that cannot be read (pkg/scheduler/plugins/extender/extender.go); here it is an error.
func DecodeExtender(p *config.TierPlugin, path *field.Path) (Extender, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	var e Extender
	a := &e.Args
	a.URLPrefix = value(d, "extender.urlPrefix", "", webAddress)
	t := d.section("extender.tlsConfig")
	a.TLSConfig = config.ExtenderTLSConfig{
		Insecure:   value(t, "insecure", false, Bool),
		ServerName: value(t, "serverName", "", oneWord),
		CertFile:   value(t, "certFile", "", oneWord),
		KeyFile:    value(t, "keyFile", "", oneWord),
		CAFile:     value(t, "caFile", "", oneWord),
	}
	d.join(t)
	d.errs = append(d.errs, ExtenderTLS(t.path, &a.TLSConfig, a.URLPrefix)...)
	a.HTTPTimeout = metav1.Duration{Duration: value(d, "extender.httpTimeout", time.Second, duration(1, "more than 0s"))}
	a.Ignorable = value(d, "extender.ignorable", false, Bool)
	a.ManagedResources = value(d, "extender.managedResources", nil, listOfNames)
	a.MaxScore = int64(value(d, "extender.maxScore", 100, integer(1, heaviest)))
	for _, verb := range []struct {
		key  string
		into *string
		by   config.Switch
	}{
		{"predicateVerb", &a.PredicateVerb, config.EnablePredicate},
		{"prioritizeVerb", &a.PrioritizeVerb, config.EnableNodeOrder},
		{"allocateFuncVerb", &a.AllocateFuncVerb, ""},
		{"deallocateFuncVerb", &a.DeallocateFuncVerb, ""},
		{"onSessionOpenVerb", &e.OnSessionOpenVerb, ""},
		{"onSessionCloseVerb", &e.OnSessionCloseVerb, ""},
		{"preemptableVerb", &e.PreemptableVerb, config.EnablePreemptable},
		{"reclaimableVerb", &e.ReclaimableVerb, config.EnableReclaimable},
		{"jobEnqueueableVerb", &e.JobEnqueueableVerb, config.EnableJobEnqueued},
		{"jobEnqueuedVerb", &e.JobEnqueuedVerb, config.EnableJobEnqueued},
		{"queueOverusedVerb", &e.QueueOverusedVerb, config.EnableOverused},
		{"jobReadyVerb", &e.JobReadyVerb, config.EnableJobReady},
	} {
		*verb.into = value(d, "extender."+verb.key, "", oneWord)
		if verb.by != "" && !p.Enabled(verb.by) {
			*verb.into = ""
		}
	}
	errs := d.finish(p.Name)
	if _, given := p.Arguments["extender.urlPrefix"]; !given && (e.Votes() || e.Places()) {
		errs = append(errs, field.Required(d.path.Key("extender.urlPrefix"), "verbs are given: write where the extender is, such as http://extender.example.com:8080/v1"))
	}
	return e, errs
}

// WebAddress says what is wrong with the URL of an extender.
func WebAddress(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("must be a URL with http or https and a host, without a query, such as http://extender.example.com:8080/v1")
	}
	return nil
}

// ExtenderTLS says what is wrong with how TLS is to be spoken to the extender at a URL.
func ExtenderTLS(path *field.Path, t *config.ExtenderTLSConfig, url string) field.ErrorList {
	var errs field.ErrorList
	if *t != (config.ExtenderTLSConfig{}) && strings.HasPrefix(url, "http:") {
		errs = append(errs, field.Forbidden(path, "the extender is asked by plain http: write https into the URL, or leave this out"))
	}
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		errs = append(errs, field.Required(path.Child("keyFile"), "it goes with certFile: name the file with its key"))
	case t.CertFile == "" && t.KeyFile != "":
		errs = append(errs, field.Required(path.Child("certFile"), "it goes with keyFile: name the file with its certificate"))
	}
	if t.Insecure && t.CAFile != "" {
		errs = append(errs, field.Invalid(path.Child("insecure"), true, "must be false with caFile: the one has no certificate checked, the other says by what"))
	}
	return errs
}

func webAddress(v runtime.RawExtension) (string, error) {
	text := scalar(v)
	return text, WebAddress(text)
}

// oneWord parses a text.
func oneWord(v runtime.RawExtension) (string, error) {
	var text string
	if json.Unmarshal(v.Raw, &text) != nil {
		return "", errors.New(`must be a text`)
	}
	return text, nil
}

// listOfNames parses a list of texts that are not empty.
func listOfNames(v runtime.RawExtension) ([]string, error) {
	var list []string
	if json.Unmarshal(v.Raw, &list) != nil || slices.Contains(list, "") {
		return nil, errors.New(`must be a list of names of resources, such as ["nvidia.com/gpu"]`)
	}
	return list, nil
}
