// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedulerconf reads Volcano's configuration file, volcano-scheduler.conf. It is strict: what Volcano would
// silently ignore is an error here.
package schedulerconf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/documents"
	"github.com/caldera-scheduler/caldera/pkg/suggest"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// sections are the keys of the file.
var sections = []string{"actions", "tiers", "configurations", "metrics"}

// Parse reads and validates a file. What is absent has Volcano's built-in default. Tiers may name policies from outside besides Volcano's
// plugins. The error tells everything that is wrong, as an Aggregate of field errors if the file is YAML at all.
func Parse(data []byte, outside ...string) (*config.BatchQueueArgs, error) {
	content, err := document(data)
	if err != nil {
		return nil, err
	}
	var r reader
	written := r.file(content)
	v1.SetDefaults_BatchQueueArgs(written)
	args := &config.BatchQueueArgs{}
	if err := v1.Convert_v1_BatchQueueArgs_To_config_BatchQueueArgs(written, args, nil); err != nil {
		return nil, fmt.Errorf("converting the configuration: %w", err)
	}
	if err := r.with(validation.ValidateBatchQueueArgs(nil, args, outside...)); err != nil {
		return nil, err
	}
	return args, nil
}

// document is the one YAML document of a file, as JSON.
func document(data []byte) ([]byte, error) {
	content := []byte("null")
	for text, err := range documents.In(data) {
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		next, err := yaml.YAMLToJSONStrict(text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading the configuration: %w", err)
		case isNull(next): // Nothing but comments.
		case next[0] != '{':
			return nil, fmt.Errorf("the configuration is %s; it must be a map with the keys %s", next, strings.Join(sections, ", "))
		case !isNull(content):
			return nil, errors.New("the configuration is more than one YAML document; remove the line ---")
		default:
			content = next
		}
	}
	return content, nil
}

func isNull(value []byte) bool { return len(value) == 0 || string(value) == "null" }

// reader takes a file apart and collects what is not as it should be.
type reader struct {
	errs field.ErrorList
}

// file reads the whole file.
func (r *reader) file(content []byte) *v1.BatchQueueArgs {
	section := r.object(nil, content, sections...)
	written := &v1.BatchQueueArgs{}
	if list := field.NewPath("actions"); !isNull(section["actions"]) {
		written.Actions = r.actions(list, section["actions"])
	}
	if list := field.NewPath("tiers"); !isNull(section["tiers"]) {
		written.Tiers = []v1.Tier{} // No tiers at all are not the default ones.
		for i, tier := range r.list(list, section["tiers"]) {
			written.Tiers = append(written.Tiers, v1.Tier{Plugins: r.plugins(list.Index(i), tier)})
		}
	}
	list := field.NewPath("configurations")
	for i, entry := range r.list(list, section["configurations"]) {
		written.Configurations = append(written.Configurations, r.configuration(list.Index(i), entry))
	}
	written.Metrics = r.metrics(field.NewPath("metrics"), section["metrics"])
	return written
}

// actions reads the list of actions: a string with commas, and blanks or not.
func (r *reader) actions(path *field.Path, value json.RawMessage) []string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		r.invalid(path, value, `must be a string with commas, such as "enqueue, allocate, backfill"`)
		return nil
	}
	names := strings.Split(text, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// plugins reads the plugins of a tier.
func (r *reader) plugins(path *field.Path, tier json.RawMessage) []v1.TierPlugin {
	list := r.list(path.Child("plugins"), r.object(path, tier, "plugins")["plugins"])
	plugins := make([]v1.TierPlugin, len(list))
	for i, entry := range list {
		if err := json.Unmarshal(entry, &plugins[i]); err != nil {
			r.invalid(path.Child("plugins").Index(i), entry, err.Error())
		}
	}
	return plugins
}

// configuration reads the arguments of an action.
func (r *reader) configuration(path *field.Path, entry json.RawMessage) v1.ActionConfiguration {
	keys := r.object(path, entry, "name", "arguments")
	var c v1.ActionConfiguration
	if name := keys["name"]; !isNull(name) && json.Unmarshal(name, &c.Name) != nil {
		r.invalid(path.Child("name"), name, "must be a string")
	}
	if arguments := keys["arguments"]; !isNull(arguments) {
		if err := json.Unmarshal(arguments, &c.Arguments); err != nil {
			r.invalid(path.Child("arguments"), arguments, err.Error())
		}
	}
	return c
}

// metrics reads the section metrics. Volcano wants strings; a bare number or flag is as good.
func (r *reader) metrics(path *field.Path, section json.RawMessage) map[string]string {
	var values map[string]string
	keys := r.object(path, section, arguments.MetricsKeys()...)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value := keys[key]
		text := string(value)
		switch {
		case isNull(value):
			continue
		case bytes.ContainsAny(value[:1], "{["):
			r.invalid(path.Key(key), value, "must be a string")
			continue
		case json.Unmarshal(value, &text) != nil:
			text = string(value)
		}
		if values == nil {
			values = map[string]string{}
		}
		if slices.Contains(arguments.MetricsKeys(), key) { // The others are told already.
			values[key] = text
		}
	}
	return values
}

// object reads a map, which may have these keys only.
func (r *reader) object(path *field.Path, value json.RawMessage, valid ...string) map[string]json.RawMessage {
	var keys map[string]json.RawMessage
	if isNull(value) {
		return nil
	}
	if json.Unmarshal(value, &keys) != nil {
		r.invalid(path, value, "must be a map with the keys "+strings.Join(valid, ", "))
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(valid, key) {
			r.errs = append(r.errs, suggest.UnknownKey(path.Child(key), key, valid))
		}
	}
	return keys
}

// list reads a list.
func (r *reader) list(path *field.Path, value json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if !isNull(value) && json.Unmarshal(value, &list) != nil {
		r.invalid(path, value, "must be a list")
	}
	return list
}

func (r *reader) invalid(path *field.Path, value json.RawMessage, detail string) {
	r.errs = append(r.errs, field.Invalid(path, value, detail))
}

// with are the errors of the reader and those of the validation but for what follows from the former: a value that
// could not be read is not missing.
func (r *reader) with(invalid error) error {
	all := r.errs
	if aggregate, ok := errors.AsType[utilerrors.Aggregate](invalid); ok {
		for _, err := range aggregate.Errors() {
			if e, ok := errors.AsType[*field.Error](err); ok && !slices.ContainsFunc(r.errs, func(read *field.Error) bool {
				return read.Type == field.ErrorTypeInvalid && strings.HasPrefix(e.Field, read.Field)
			}) {
				all = append(all, e)
			}
		}
	}
	return all.ToAggregate()
}
