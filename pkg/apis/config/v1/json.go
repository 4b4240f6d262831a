// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// UnmarshalJSON reads an entry. What cannot be used goes to Unknown, so that validation can report it together with all
// other errors and say where it is. Only keys that are empty or given twice are errors here.
func (p *TierPlugin) UnmarshalJSON(data []byte) error {
	*p = TierPlugin{}
	keys, err := members(data)
	if errors.Is(err, errNoObject) {
		return p.refuse(config.NotAMap, data)
	}
	if err != nil {
		return err
	}
	// Sorted, the regular spelling of a switch comes first: a capital letter sorts before the d.
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if err := p.set(key, keys[key]); err != nil {
			return err
		}
	}
	return nil
}

// set takes one key of an entry.
func (p *TierPlugin) set(key string, value json.RawMessage) error {
	s, known := config.SwitchOf(key)
	switch {
	case key == "name":
		if json.Unmarshal(value, &p.Name) != nil {
			return p.refuse(key, value)
		}
	case key == "arguments":
		if err := json.Unmarshal(value, &p.Arguments); errors.Is(err, errNoObject) {
			return p.refuse(key, value)
		} else if err != nil {
			return fmt.Errorf("reading arguments: %w", err)
		}
	case !known:
		return p.refuse(key, value)
	case isNull(value): // As if it were absent.
	default:
		on, err := arguments.Bool(runtime.RawExtension{Raw: value})
		if before, given := p.Switches[string(s)]; err != nil || given && before != on {
			return p.refuse(key, value)
		}
		if p.Switches == nil {
			p.Switches = map[string]bool{}
		}
		p.Switches[string(s)] = on
	}
	return nil
}

// refuse keeps a key that cannot be used.
func (p *TierPlugin) refuse(key string, value json.RawMessage) error {
	if p.Unknown == nil {
		p.Unknown = map[string]runtime.RawExtension{}
	}
	extension, err := canonical(value)
	p.Unknown[key] = extension
	return err
}

// MarshalJSON writes the entry as it is read.
func (p TierPlugin) MarshalJSON() ([]byte, error) {
	if entry, ok := p.Unknown[config.NotAMap]; ok {
		return json.Marshal(entry)
	}
	keys := map[string]any{"name": p.Name}
	if p.Arguments != nil {
		keys["arguments"] = p.Arguments
	}
	for key, on := range p.Switches {
		if _, taken := p.Unknown[key]; taken { // The historical spelling was the one that could be used.
			key = "enabled" + strings.TrimPrefix(key, "enable")
		}
		keys[key] = on
	}
	for key, value := range p.Unknown {
		keys[key] = value
	}
	return json.Marshal(keys)
}

// UnmarshalJSON reads the values in one form, so that profiles which mean the same compare equal.
func (a *Arguments) UnmarshalJSON(data []byte) error {
	*a = nil
	if isNull(data) {
		return nil
	}
	keys, err := members(data)
	if err != nil {
		return err
	}
	*a = make(Arguments, len(keys))
	for key, value := range keys {
		if (*a)[key], err = canonical(value); err != nil {
			return err
		}
	}
	return nil
}

var errNoObject = errors.New("must be a map")

// members are the keys and values of a JSON object. An empty key is an error, and so is one that is there twice: in YAML
// the reader of the whole file finds it, in JSON nobody else does.
func members(data []byte) (map[string]json.RawMessage, error) {
	if isNull(data) {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	start, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	if start != json.Delim('{') {
		return nil, errNoObject
	}
	keys := map[string]json.RawMessage{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string) // The decoder accepts nothing else for a key.
		if name == "" {
			return nil, errors.New("a key is empty")
		}
		if _, given := keys[name]; given {
			return nil, fmt.Errorf("key %q is given twice", name)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("reading the value of %q: %w", name, err)
		}
		keys[name] = value
	}
	return keys, nil
}

// canonical is a value with its keys sorted and without blanks; null is the empty extension. Numbers stay as written.
func canonical(value json.RawMessage) (runtime.RawExtension, error) {
	if isNull(value) {
		return runtime.RawExtension{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var parsed any
	if err := decoder.Decode(&parsed); err != nil {
		return runtime.RawExtension{}, err
	}
	written, err := json.Marshal(parsed)
	return runtime.RawExtension{Raw: written}, err
}

func isNull(value []byte) bool { return string(bytes.TrimSpace(value)) == "null" }
