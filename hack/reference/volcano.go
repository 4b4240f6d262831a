// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/internal/testing/keys"
	"github.com/caldera-scheduler/caldera/internal/testing/reference"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

const (
	decoders      = "pkg/volcano/arguments"
	configuration = "pkg/apis/config"
)

// volcanoArguments is the page of what a volcano-scheduler.conf may say.
func volcanoArguments() (*reference.Page, error) {
	v, err := newVolcano()
	if err != nil {
		return nil, err
	}
	v.page.Say("What a `volcano-scheduler.conf` may say. [volcano-compat.md](../volcano-compat.md) says what is different on the whole, and why. " +
		"The column Volcano says whether it is as there, in the words of `kubectl caldera convert -o report`; new is what Volcano does not have. Keys of maps are behind the key of the map, with a dot.")
	for _, section := range []func() error{v.actions, v.plugins, v.switches, v.metrics} {
		if err := section(); err != nil {
			return nil, err
		}
	}
	if len(v.keys) > 0 {
		return nil, fmt.Errorf("arguments of %v are in no section of %s", slices.Sorted(maps.Keys(v.keys)), "volcano-arguments.md")
	}
	return v.page, nil
}

// volcano makes the page.
type volcano struct {
	page *reference.Page
	// said are the comments of each package that arguments are decoded into.
	said map[string]*comments
	// keys are those that are accepted and not told of yet, by their owner.
	keys map[string][]string
}

func newVolcano() (*volcano, error) {
	v := &volcano{
		page: reference.New("volcano-arguments.md", "Volcano's configuration file", decoders+", pkg/volcano/profile/report.go and hack/reference/told.go"),
		said: map[string]*comments{},
	}
	var err error
	for name, dir := range map[string]string{"arguments": decoders, "config": typesOfArguments, "switches": configuration} {
		if v.said[name], err = read(dir); err != nil {
			return nil, err
		}
	}
	v.keys, err = keys.All()
	return v, err
}

func (v *volcano) actions() error {
	v.page.Section(2, "Actions")
	v.page.Say("In `actions`, each with its arguments under `configurations`.")
	for _, action := range config.Actions() {
		v.page.Section(3, string(action))
		if err := v.owner(keys.Action + string(action)); err != nil {
			return err
		}
	}
	return nil
}

func (v *volcano) plugins() error {
	v.page.Section(2, "Plugins")
	v.page.Say("In `tiers`, each with its `arguments`.")
	for _, name := range arguments.Plugins() {
		v.page.Section(3, name)
		if err := v.owner(name); err != nil {
			return err
		}
	}
	return nil
}

func (v *volcano) metrics() error {
	v.page.Section(2, "Metrics")
	v.page.Say("In `metrics`: where the loads of nodes come from, for `usage` and `rescheduling`. All values are texts.")
	return v.table(keys.Metrics)
}

// switches tells of what turns single hooks of plugins off.
func (v *volcano) switches() error {
	v.page.Section(2, "Switches")
	v.page.Say("Beside the name of a plugin. Each may be spelled `enableX` or `enabledX`, and its value may be quoted.")
	var rows [][]string
	for _, c := range v.said["switches"].constants {
		if c.typ != "Switch" {
			continue
		}
		if c.comment == "" {
			return fmt.Errorf("the switch %s has no comment", c.name)
		}
		s := config.Switch(c.value)
		args := &config.BatchQueueArgs{Tiers: []config.Tier{{Plugins: []config.TierPlugin{{Name: config.PluginGang, Switches: map[config.Switch]bool{s: false}}}}}}
		lines := profile.Report(args, nil)
		otherwise := (&config.TierPlugin{}).Enabled(s)
		rows = append(rows, []string{reference.Quote(c.value), reference.Quote(strconv.FormatBool(otherwise)), reference.Sentence(of(c.name, c.comment)), state(lines[len(lines)-1])})
	}
	if len(rows) != len(config.Switches()) {
		return fmt.Errorf("%d switches have comments, of %d", len(rows), len(config.Switches()))
	}
	v.page.Table([]string{"switch", "default", "what it turns off", "Volcano"}, rows)
	return nil
}

// owner tells of a plugin or an action, and of its arguments.
func (v *volcano) owner(owner string) error {
	text := as(owner)
	if len(v.keys[owner]) == 0 {
		v.page.Say(text + " It takes no arguments.")
		delete(v.keys, owner)
		return nil
	}
	v.page.Say(text)
	return v.table(owner)
}

// as says whether a plugin or an action is as in Volcano.
func as(owner string) string {
	line := fate(owner, "")
	switch note := reference.Sentence(line.Note); {
	case owner == config.PluginReservation || owner == config.PluginFragmentation:
		return "Volcano does not have it."
	case line.Fate == profile.Same:
		return strings.TrimSpace("The same as in Volcano. " + note)
	default:
		return "Other than in Volcano: " + reference.Prose(line.Note) + "."
	}
}

// table has the arguments of an owner.
func (v *volcano) table(owner string) error {
	all := slices.SortedFunc(slices.Values(meanings[owner]), func(a, b told) int { return strings.Compare(a.key, b.key) })
	var have []string
	for _, a := range all {
		have = append(have, a.key)
	}
	if want := v.keys[owner]; !slices.Equal(have, want) {
		return fmt.Errorf("%s accepts the arguments %v, and hack/reference/told.go has %v", owner, want, have)
	}
	delete(v.keys, owner)
	decoded := reflect.ValueOf(decode(owner))
	var rows [][]string
	above := profile.Line{}
	for _, a := range all {
		row, err := v.row(owner, a, decoded)
		if err != nil {
			return fmt.Errorf("argument %s of %s: %w", a.key, owner, err)
		}
		line := fate(owner, a.key)
		if a.ours {
			line = profile.Line{Fate: "new"}
		}
		told := line
		if line.Note != "" && line.Note == above.Note {
			told.Note = "as above"
		}
		above = line
		rows = append(rows, append(row, state(told)))
	}
	v.page.Table([]string{"key", "type", "default", "what it is", "Volcano"}, rows)
	return nil
}

func (v *volcano) row(owner string, a told, decoded reflect.Value) ([]string, error) {
	meaning := a.text
	if a.field == "" {
		return []string{reference.Quote(a.key), a.kind, otherwise(a.otherwise), reference.Sentence(meaning)}, nil
	}
	value, comment, err := v.follow(decoded, a.field)
	if err != nil {
		return nil, err
	}
	if meaning == "" {
		meaning = comment
	}
	if meaning == "" {
		return nil, fmt.Errorf("the field %s has no comment", a.field)
	}
	kind := a.kind
	if kind == "" {
		kind = kindOf(value.Type())
	}
	is := otherwise(a.otherwise)
	if is == "" {
		if is, err = written(value); err != nil {
			return nil, err
		}
	}
	return []string{reference.Quote(a.key), kind, is, reference.Sentence(byKeys(owner, meaning))}, nil
}

// byKeys is a comment in which other fields are called by their arguments. Those of one word are taken for words.
func byKeys(owner, comment string) string {
	for _, a := range meanings[owner] {
		name := a.field[strings.LastIndex(a.field, ".")+1:]
		if name != "" && strings.ToLower(name[1:]) != name[1:] && !strings.Contains(name, "[") {
			comment = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(comment, reference.Quote(a.key))
		}
	}
	return comment
}

// otherwise is a default that told has. What is not a value stays as it is.
func otherwise(text string) string {
	if text == "none" || strings.HasPrefix(text, "required") {
		return text
	}
	return reference.Quote(text)
}

// follow finds a field of what was decoded, and what its comment says.
func (v *volcano) follow(value reflect.Value, path string) (at reflect.Value, comment string, err error) {
	for step := range strings.SplitSeq(path, ".") {
		name, key, isMap := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		t := value.Type()
		if value = value.FieldByName(name); !value.IsValid() {
			return value, "", fmt.Errorf("%s has no field %s", t.Name(), name)
		}
		from := v.said["arguments"]
		if strings.HasSuffix(t.PkgPath(), configuration) {
			from = v.said["config"]
		}
		comment = of(name, from.fields[t.Name()+"."+name])
		if isMap {
			k := reflect.ValueOf(key).Convert(value.Type().Key())
			if value = value.MapIndex(k); !value.IsValid() {
				return value, "", fmt.Errorf("%s has no entry %s", name, key)
			}
		}
	}
	return value, comment, nil
}

// kindOf is a type in words.
func kindOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[resource.Quantity]():
		return "quantity"
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Int {
		return "whole number"
	}
	words, _ := described(t)
	return words
}

// written is a value as it is written in a file; nothing if it is empty, or is that of no argument.
func written(value reflect.Value) (string, error) {
	switch v := value.Interface().(type) {
	case time.Duration:
		return reference.Quote(short(v.String())), nil
	case resource.Quantity:
		return reference.Quote(v.String()), nil
	}
	if k := value.Kind(); (k == reflect.String || k == reflect.Map || k == reflect.Slice || k == reflect.Pointer) && value.IsZero() {
		return "", nil
	}
	data, err := json.Marshal(value.Interface())
	if err != nil {
		return "", fmt.Errorf("writing a default: %w", err)
	}
	return reference.Quote(short(strings.Trim(string(data), `"`))), nil
}

// fate is what the report says of an argument, or of its owner if it is that of none.
func fate(owner, key string) profile.Line {
	args := &config.BatchQueueArgs{}
	values := map[string]runtime.RawExtension{}
	if key != "" {
		// Of a map the report tells as a whole.
		if head, _, _ := strings.Cut(key, "."); slices.Contains([]string{"resources", "sra", "proportional", "strategies"}, head) {
			key = head
		}
		values[key] = runtime.RawExtension{Raw: []byte("0")}
	}
	action, isAction := strings.CutPrefix(owner, keys.Action)
	switch {
	case owner == keys.Metrics:
		return profile.Line{Fate: profile.Same}
	case isAction && key == "":
		args.Actions = []config.Action{config.Action(action)}
	case isAction:
		args.Configurations = []config.ActionConfiguration{{Name: config.Action(action), Arguments: values}}
	default:
		args.Tiers = []config.Tier{{Plugins: []config.TierPlugin{{Name: owner, Arguments: values}}}}
	}
	lines := profile.Report(args, nil)
	return lines[len(lines)-1]
}

// state is a fate with its reason.
func state(line profile.Line) string {
	text := string(line.Fate)
	if line.Note != "" {
		text += ": " + reference.Prose(line.Note)
	}
	return text
}

// decode is what the arguments of an owner are decoded to if none are given.
func decode(owner string) any {
	if action, ok := strings.CutPrefix(owner, keys.Action); ok {
		decoded, _ := arguments.DecodeAction(&config.ActionConfiguration{Name: config.Action(action)}, field.NewPath(owner))
		return decoded
	}
	if owner == keys.Metrics {
		decoded, _ := arguments.DecodeMetrics(map[string]string{}, field.NewPath(owner))
		return decoded
	}
	if of, ok := decoded[owner]; ok {
		return of(&config.TierPlugin{Name: owner}, field.NewPath(owner))
	}
	return struct{}{}
}

// decoded decodes the arguments of plugins that are kept in fields.
var decoded = map[string]func(*config.TierPlugin, *field.Path) any{
	config.PluginBinpack:              without(arguments.DecodeBinpack),
	config.PluginCapacity:             without(arguments.DecodeCapacity),
	config.PluginDeviceShare:          without(arguments.DecodeDeviceShare),
	config.PluginExtender:             without(arguments.DecodeExtender),
	config.PluginFragmentation:        without(arguments.DecodeFragmentation),
	config.PluginNetworkTopologyAware: without(arguments.DecodeNetworkTopology),
	config.PluginNodeGroup:            without(arguments.DecodeNodeGroup),
	config.PluginNodeOrder:            without(arguments.DecodeNodeOrder),
	config.PluginOvercommit:           without(arguments.DecodeOvercommit),
	config.PluginPredicates:           without(arguments.DecodePredicates),
	config.PluginProportion:           without(arguments.DecodeProportion),
	config.PluginRescheduling:         without(arguments.DecodeRescheduling),
	config.PluginReservation:          without(arguments.DecodeReservation),
	config.PluginResourceStrategyFit:  without(arguments.DecodeResourceStrategyFit),
	config.PluginSLA:                  without(arguments.DecodeSLA),
	config.PluginTDM:                  without(arguments.DecodeTDM),
	config.PluginUsage:                without(arguments.DecodeUsage),
}

// without is a decoder of arguments that are not given, of which nothing can be wrong.
func without[T any](decode func(*config.TierPlugin, *field.Path) (T, field.ErrorList)) func(*config.TierPlugin, *field.Path) any {
	return func(p *config.TierPlugin, path *field.Path) any {
		decoded, _ := decode(p, path)
		return decoded
	}
}
