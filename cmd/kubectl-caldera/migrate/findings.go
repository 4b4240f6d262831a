// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/version"
)

// State says what a finding means for the switch.
type State string

// The states.
const (
	// OK: it is as it is to be.
	OK State = "ok"
	// Differs: it will be otherwise than with Volcano.
	Differs State = "differs"
	// ToDo: something is to be done before the switch.
	ToDo State = "to do"
	// Stops: the cluster cannot switch.
	Stops State = "stops"
	// Unknown: the user may not read it.
	Unknown State = "unknown"
)

// Finding is something that was looked at.
type Finding struct {
	State State `json:"state"`
	// What was looked at, and what was found.
	What  string `json:"what"`
	Found string `json:"found"`
	// Do says what to do about it; empty if nothing is to be done.
	Do string `json:"do,omitempty"`
}

// findings are what there is to say of a cluster, in the order in which one reads it.
func (c *cluster) findings(ctx context.Context) []Finding {
	all := slices.Concat(c.apiServer(), c.volcanoDefinitions(), c.volcanoParts(), c.schedulers(), c.others(), c.configuration(ctx))
	for _, u := range c.unread {
		// One refusal is enough to know what is missing.
		why, _, _ := strings.Cut(u.err.Error(), "\n")
		all = append(all, Finding{State: Unknown, What: u.what, Found: why, Do: "ask again as somebody who may read it"})
	}
	return all
}

// apiServer compares the API server with the Kubernetes that the scheduler is made of. Beside an older one the scheduler acts as that, if it can. Kubernetes
// supports no scheduler that is more than one minor version older than its API server (https://kubernetes.io/releases/version-skew-policy).
func (c *cluster) apiServer() []Finding {
	ours := version.Kubernetes()
	f := Finding{State: OK, What: "Kubernetes", Found: fmt.Sprintf("the API server is %s, Caldera is made of Kubernetes %s", c.server.GitVersion, ours)}
	server, err := version.OfServer(c.server)
	if err != nil {
		f.State, f.Found = Unknown, err.Error()
		return []Finding{f}
	}
	switch acts, err := version.Beside(ours, server); {
	case err != nil:
		f.State, f.Do = Stops, err.Error()
	case server.GreaterThan(ours.AddMinor(1)):
		f.State, f.Do = Stops, "a scheduler may be one minor version older than its API server, not more: take a newer Caldera"
	case acts.LessThan(ours):
		f.Found += fmt.Sprintf("; it acts as %s", acts)
	}
	return []Finding{f}
}

// volcanoDefinitions looks at the definitions of PodGroups and queues.
func (c *cluster) volcanoDefinitions() []Finding {
	if c.definitions == nil {
		return nil
	}
	stay := Finding{
		State: ToDo, What: "definitions", Found: "Volcano's PodGroups and queues, which stay",
		Do: "take the lines crds/... out of manifests/kustomization.yaml, so that Volcano's controllers can go on writing",
	}
	all := []Finding{stay}
	for _, name := range definitions {
		theirs := c.definitions[name]
		if theirs == nil {
			return []Finding{{State: Stops, What: name, Found: "there is no such definition", Do: "this is no Volcano cluster: docs/install.md says how to install Caldera alone"}}
		}
		ours, err := shipped(name)
		if err != nil {
			all = append(all, Finding{State: Unknown, What: name, Found: err.Error()})
			continue
		}
		if missing := missingFields(schemaOf(ours), schemaOf(theirs), ""); len(missing) > 0 {
			all = append(all, Finding{
				State: Differs, What: name, Found: "it is older, and has no " + strings.Join(missing, ", "),
				Do: "whoever is to use them needs the definitions of a newer Volcano",
			})
		}
	}
	return all
}

// shipped is the definition of a name that Caldera ships. It has all fields that the scheduler knows.
func shipped(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := manifests.CRDs.ReadDir("crds")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := manifests.CRDs.ReadFile("crds/" + file.Name())
		if err != nil {
			return nil, err
		}
		for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
			d := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(document, d); err != nil {
				return nil, fmt.Errorf("reading %s: %w", file.Name(), err)
			}
			if d.Name == name {
				return d, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no definition %s to compare with", name)
}

// schemaOf is the schema of the version of a definition that the scheduler reads; nil if it has none.
func schemaOf(d *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	for i := range d.Spec.Versions {
		if v := &d.Spec.Versions[i]; v.Name == "v1beta1" && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// missingFields are the fields of one schema that another one does not have, sorted. Of one that is not there its own fields are not told.
func missingFields(ours, theirs *apiextensionsv1.JSONSchemaProps, at string) []string {
	if ours == nil || theirs == nil || theirs.XPreserveUnknownFields != nil && *theirs.XPreserveUnknownFields {
		return nil
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(ours.Properties)) {
		our, their := ours.Properties[name], theirs.Properties[name]
		field := strings.TrimPrefix(at+"."+name, ".")
		if _, ok := theirs.Properties[name]; !ok {
			missing = append(missing, field)
			continue
		}
		if our.Items != nil && our.Items.Schema != nil && their.Items != nil && their.Items.Schema != nil {
			our, their, field = *our.Items.Schema, *their.Items.Schema, field+"[]"
		}
		missing = append(missing, missingFields(&our, &their, field)...)
	}
	return missing
}

// volcanoParts says which parts of Volcano run, but for its schedulers.
func (c *cluster) volcanoParts() []Finding {
	var all []Finding
	has := map[program]bool{}
	for _, p := range c.parts {
		has[p.program] = true
		if p.program != scheduler {
			all = append(all, Finding{State: OK, What: p.name, Found: p.image + ", which stays" + triedWith()})
		}
	}
	if len(c.parts) > 0 && !has[controllers] {
		all = append(all, Finding{State: Differs, What: "Volcano's controllers", Found: "none run: nobody makes pods of Jobs of batch.volcano.sh, as before"})
	}
	return all
}

// triedWith is the version of Volcano whose API the program knows.
func triedWith() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == "volcano.sh/apis" {
			return "; tried with " + m.Version
		}
	}
	return ""
}

// schedulers looks at Volcano's schedulers and their options.
func (c *cluster) schedulers() []Finding {
	var all []Finding
	for _, p := range c.parts {
		if p.program != scheduler {
			continue
		}
		f := Finding{State: OK, What: p.name, Found: p.image + ", does not run: its replicas are 0"}
		if p.replicas > 0 {
			f.State, f.Found = ToDo, p.image+", runs"
			f.Do = "scale it to 0 at the switch, and wait for its pods to be gone, before Caldera starts: docs/install-with-volcano.md"
		}
		all = append(all, f)
		all = append(all, p.optionsThatDiffer()...)
	}
	if len(all) == 0 && len(c.unread) == 0 {
		all = append(all, Finding{State: Differs, What: string(scheduler), Found: "no Deployment or StatefulSet runs it", Do: "see that nothing else places pods with schedulerName volcano"})
	}
	return all
}

// option says how an option of vc-scheduler is judged, and what to do about it.
type option struct {
	state State
	note  string
}

// optionNotes are the options of vc-scheduler (Volcano cmd/scheduler/app/options) that Caldera does not take over by itself. All others are either in
// manifests/deploy, or of no consequence here.
var optionNotes = map[string]option{
	"node-selector":                    {Differs, "all nodes are used; taint those that batch pods are to keep off"},
	"percentage-nodes-to-find":         {Differs, "it is percentageOfNodesToScore of the configuration's profile here"},
	"minimum-feasible-nodes":           {Differs, "kube-scheduler looks for 100 at least"},
	"minimum-percentage-nodes-to-find": {Differs, "kube-scheduler looks at 5 % at least"},
	"plugins-dir":                      {ToDo, "plugins that were built for Volcano are not loaded: docs/extending.md says how to have them"},
	"default-queue":                    {Differs, "a job that names no queue goes to that of its namespace's annotation, else to default"},
}

// optionsThatDiffer looks at the options of a scheduler of Volcano.
func (p *part) optionsThatDiffer() []Finding {
	var all []Finding
	say := func(option string, s State, note string) {
		all = append(all, Finding{State: s, What: p.name, Found: fmt.Sprintf("--%s is %q", option, p.options[option]), Do: note})
	}
	for _, name := range slices.Sorted(maps.Keys(p.options)) {
		value := p.options[name]
		switch {
		case name == "scheduler-name" && value != "volcano":
			say(name, ToDo, "give the configuration a profile of each name: manifests/config has one that is called volcano")
		case name == "default-queue" && value == "default", value == "":
		case name == "feature-gates" && strings.Contains(value, "SchedulingGatesQueueAdmission=true"):
			say(name, ToDo, "kubectl apply -f manifests/rbac-optional/queue-gate.yaml, so that the scheduler may take the gate off pods")
		case strings.Contains(name, "shard"):
			say(name, Differs, "one scheduler places all, and others stand by")
		default:
			if o, ok := optionNotes[name]; ok {
				say(name, o.state, o.note)
			}
		}
	}
	for _, e := range p.container.Env {
		if e.Name == "MULTI_SCHEDULER_ENABLE" && e.Value == "true" {
			all = append(all, Finding{State: Differs, What: p.name, Found: "several schedulers share the pods by a hash", Do: "one scheduler places all, and others stand by"})
		}
	}
	return all
}

// others looks at who else places pods of the same names: a Caldera that leads already, and the cluster's own scheduler.
func (c *cluster) others() []Finding {
	var all []Finding
	if holder, leads := c.leader(); leads {
		f := Finding{State: OK, What: "Caldera", Found: fmt.Sprintf("%s leads already", holder)}
		if slices.ContainsFunc(c.parts, func(p part) bool { return p.program == scheduler && p.replicas > 0 }) {
			f.State, f.Do = Stops, "scale Volcano's scheduler to 0 at once: both place the same pods"
		}
		all = append(all, f)
	}
	if !c.only {
		return all
	}
	names := make([]string, len(c.kubeSchedulers))
	for i := range c.kubeSchedulers {
		names[i] = c.kubeSchedulers[i].Name
	}
	f := Finding{State: ToDo, What: "kube-scheduler", Found: strings.Join(names, ", "), Do: "stop it at the switch, since two must not serve the name default-scheduler: docs/only-scheduler.md"}
	if len(names) == 0 {
		f.State, f.Found = Unknown, "no pod with component=kube-scheduler in "+kubeSystem
		f.Do = "if it runs elsewhere, stop it at the switch; where you cannot, let Caldera run beside it, without --only-scheduler"
	}
	return append(all, f)
}

// leader is who holds Caldera's lease, and whether it still does.
func (c *cluster) leader() (holder string, leads bool) {
	if c.lease == nil || c.lease.Spec.HolderIdentity == nil || c.lease.Spec.RenewTime == nil {
		return "", false
	}
	lasts := 15 * time.Second
	if s := c.lease.Spec.LeaseDurationSeconds; s != nil {
		lasts = time.Duration(*s) * time.Second
	}
	holder = *c.lease.Spec.HolderIdentity
	return cmp.Or(holder, "nobody"), holder != "" && c.now.Sub(c.lease.Spec.RenewTime.Time) < lasts
}
