// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// options are the flags.
type options struct {
	scenario

	row        string
	contenders []string
	kinds      []string
	out        string
	qps        int
	logs       string
}

// scenario is what all contenders are measured in.
type scenario struct {
	Nodes int `json:"nodes"`
	// Room is the fraction of the nodes, 0-1, that have 4 free cores each. All others are full; of those, a tenth stay as they are.
	Room float64 `json:"room"`
	// Fill is how many pods of others, 900 millicores each, fill a full node.
	Fill int `json:"fill"`
	// Ends is how many pods of others end a second; each is replaced.
	Ends int `json:"ends"`
	// Hopeless is the number of jobs that cannot run, of one pod or more as their kind has it.
	Hopeless int `json:"hopeless"`
	// Shapes is how many different requests the hopeless jobs have.
	Shapes int `json:"shapes"`
	Probes int `json:"probes"`
	// ProbeSize is the number of pods of a probe, one core each; a probe of more than one is a gang.
	ProbeSize int           `json:"probeSize"`
	Every     time.Duration `json:"every"`
	// Warm is how long the scheduler may take to get through the new hopeless work, as a first probe shows, before pods of others
	// end; Settle is how long they have ended before anything is measured.
	Warm time.Duration `json:"warm"`
	// Patience is how long a probe, and a job that became possible, may take.
	Patience time.Duration `json:"patience"`
	Settle   time.Duration `json:"settle"`
	// Possible is the fraction of the hopeless jobs, 0-1, that get room while it is measured.
	Possible float64 `json:"possible"`
	// PlainOthers has the pods that end be ordinary ones, also where all else is of the batch profile.
	PlainOthers bool `json:"plainOthers"`
	// Kubelets says whether bound pods run.
	Kubelets bool `json:"kubelets"`
	Runs     int  `json:"runs"`
}

const (
	// maxShapes keeps the largest request that is to fit a full node, were it empty, below its size.
	maxShapes = 500
	// coresFree is what a node with room has free, in cores.
	coresFree = 4
)

func bind(flags *pflag.FlagSet, o *options) {
	flags.StringVar(&o.row, "row", "", "set of flags to begin with: "+strings.Join(rowNames(), ", "))
	flags.StringSliceVar(&o.contenders, "contenders", []string{"caldera", "stock"}, "what is measured, in turn")
	flags.StringSliceVar(&o.kinds, "kinds", []string{"gangs-full", "gangs-kept", "gangs-totals"}, `kinds of hopeless work, each measured by itself; or "all"`)
	flags.IntVar(&o.Nodes, "nodes", 2000, "number of nodes")
	flags.Float64Var(&o.Room, "room", 0.1, "fraction of the nodes that have room for 4 single-core probes each; the others are full")
	flags.IntVar(&o.Fill, "fill", 2, "pods of others that fill a full node")
	flags.IntVar(&o.Ends, "ends", 20, "pods of others that end a second, each to be replaced by a new one; 0 is none")
	flags.IntVar(&o.Hopeless, "hopeless", 500, "number of hopeless jobs: gangs or single pods, as the kind has it")
	flags.IntVar(&o.Shapes, "shapes", 1, "number of different requests of the hopeless jobs")
	flags.IntVar(&o.Probes, "probes", 30, "number of probes, which fit somewhere")
	flags.IntVar(&o.ProbeSize, "probe-size", 1, "pods of a probe, one core each; more than one are a gang")
	flags.DurationVar(&o.Every, "every", time.Second, "time between probes")
	flags.DurationVar(&o.Patience, "patience", 20*time.Second, "a probe that takes longer counts as not bound")
	flags.DurationVar(&o.Warm, "warm", 30*time.Second, "how long the scheduler is given to get through the new hopeless work; it ends when a probe is bound")
	flags.DurationVar(&o.Settle, "settle", 5*time.Second, "time for which pods of others have ended before the first probe")
	flags.Float64Var(&o.Possible, "possible", 0, "fraction of the hopeless jobs that get room during the probes, of kinds that can")
	flags.BoolVar(&o.PlainOthers, "plain-others", false, "the pods of others that end are ordinary pods, not batch pods")
	flags.BoolVar(&o.Kubelets, "kubelets", true, "simulate kubelets, so that bound pods run")
	flags.IntVar(&o.Runs, "runs", 1, "runs of each kind with each contender")
	flags.IntVar(&o.qps, "qps", 5000, "client-side request limit of all schedulers, requests/s")
	flags.StringVar(&o.logs, "logs", "", "directory for the schedulers' logs (default: a temporary one)")
	flags.StringVarP(&o.out, "output", "o", "text", "what is printed: text or json")
}

// row is a named set of flags.
type row struct {
	name, about string
	flags       map[string]string
}

var rows = []row{
	{"small", "200 nodes, 10 ends/s, 300 hopeless jobs, 8 probes", map[string]string{
		"nodes": "200", "room": "0.5", "fill": "4", "ends": "10", "hopeless": "300", "probes": "8",
		"kinds": "pvc-missing,affinity-nowhere,spread-nowhere,full-nodes,full-kept,claim-missing,no-node,gated,too-big",
	}},
	{"gangs", "2,000 nodes, 20 ends/s, 500 hopeless gangs of 4, of which 1 in 100 becomes possible, 30 probes", map[string]string{
		"nodes": "2000", "ends": "20", "hopeless": "500", "probes": "30", "possible": "0.01", "kinds": "gangs-full,gangs-kept,gangs-totals",
	}},
	{"large", "5,000 nodes, 50 ends/s, 5,000 hopeless gangs of 4 in 100 shapes, of which 1 in 1,000 becomes possible, 30 probes", map[string]string{
		"nodes": "5000", "ends": "50", "hopeless": "5000", "shapes": "100", "probes": "30", "possible": "0.001", "kinds": "gangs-full",
	}},
}

func rowNames() []string {
	var names []string
	for _, r := range rows {
		names = append(names, r.name)
	}
	return names
}

// describeRows lists the rows for people.
func describeRows() string {
	var lines strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&lines, "  %-7s %s\n", r.name, r.about)
	}
	return lines.String()
}

// applyRow sets the flags of a row that were not given.
func applyRow(flags *pflag.FlagSet, name string) error {
	if name == "" {
		return nil
	}
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
	if i < 0 {
		return fmt.Errorf("--row is %q, which there is not: use one of %s", name, strings.Join(rowNames(), ", "))
	}
	for flag, value := range rows[i].flags {
		if flags.Changed(flag) {
			continue
		}
		if err := flags.Set(flag, value); err != nil {
			return fmt.Errorf("setting --%s of row %s: %w", flag, name, err)
		}
	}
	return nil
}

// plan is what the flags come to.
type plan struct {
	scenario
	kinds      []kind
	contenders []contender
	json       bool
	qps        int
	logs       string
}

// plan checks the flags.
func (o options) plan() (plan, error) {
	if o.out != "text" && o.out != "json" {
		return plan{}, fmt.Errorf("--output is %q: it must be text or json", o.out)
	}
	if o.qps < 1 {
		return plan{}, fmt.Errorf("--qps is %d: it must be at least 1", o.qps)
	}
	if err := o.scenario.check(); err != nil {
		return plan{}, err
	}
	kinds, err := parseKinds(o.kinds)
	if err != nil {
		return plan{}, err
	}
	contenders, err := parseContenders(o.contenders)
	if err != nil {
		return plan{}, err
	}
	return plan{scenario: o.scenario, kinds: kinds, contenders: contenders, json: o.out == "json", qps: o.qps, logs: o.logs}, nil
}

// check returns an error that names every flag with a wrong value.
func (s scenario) check() error {
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(s.Nodes < 4, "--nodes is %d: it must be at least 4", s.Nodes)
	wrong(s.Room <= 0 || s.Room >= 1, "--room is %g: it must be between 0 and 1", s.Room)
	wrong(s.Fill < 2 || s.Fill > 50, "--fill is %d: it must be from 2 to 50", s.Fill)
	wrong(s.Ends < 0 || s.Ends > 1000, "--ends is %d: it must be from 0 to 1000", s.Ends)
	wrong(s.Hopeless < 0 || s.Hopeless > 99_999, "--hopeless is %d: it must be from 0 to 99999", s.Hopeless)
	wrong(s.Shapes < 1 || s.Shapes > maxShapes, "--shapes is %d: it must be from 1 to %d", s.Shapes, maxShapes)
	wrong(s.Probes < 1, "--probes is %d: it must be at least 1", s.Probes)
	wrong(s.ProbeSize < 1, "--probe-size is %d: it must be at least 1", s.ProbeSize)
	wrong(s.Every <= 0, "--every is %s: it must be more than 0", s.Every)
	wrong(s.Patience <= 0, "--patience is %s: it must be more than 0", s.Patience)
	wrong(s.Warm <= 0, "--warm is %s: it must be more than 0", s.Warm)
	wrong(s.Settle < 0, "--settle is %s: it must not be less than 0", s.Settle)
	wrong(s.Possible < 0 || s.Possible > 1, "--possible is %g: it must be from 0 to 1", s.Possible)
	wrong(s.Runs < 1, "--runs is %d: it must be at least 1", s.Runs)
	if len(errs) == 0 {
		room := s.roomNodes() * coresFree
		wrong(2*s.ProbeSize > room, "--probe-size is %d: two probes must fit the %d cores that are free; raise --room or --nodes", s.ProbeSize, room)
	}
	return errors.Join(errs...)
}

// roomNodes is the number of nodes with room.
func (s scenario) roomNodes() int { return min(max(int(s.Room*float64(s.Nodes)), 1), s.Nodes-2) }

// keptNodes is the number of nodes that are full and on which nothing ends.
func (s scenario) keptNodes() int { return max((s.Nodes-s.roomNodes())/10, 1) }

// fullNodes is the number of nodes that are full and on which pods of others end.
func (s scenario) fullNodes() int { return s.Nodes - s.roomNodes() - s.keptNodes() }

// turns is the number of jobs of a kind that become possible, each on a spare node of its own.
func (s scenario) turns(k kind) int {
	if !k.turns || s.Possible == 0 || s.Hopeless == 0 {
		return 0
	}
	return max(int(s.Possible*float64(s.Hopeless)+0.5), 1)
}

func (s scenario) String() string {
	return fmt.Sprintf("%d nodes of which %d have room, %d ends/s, %d hopeless jobs of %d shapes, %d probes of %d pods %s apart",
		s.Nodes, s.roomNodes(), s.Ends, s.Hopeless, s.Shapes, s.Probes, s.ProbeSize, s.Every)
}
