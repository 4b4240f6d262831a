// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package arguments decodes the arguments of plugins in tiers and of actions into typed values. Every decode function
// reports all errors at once. Where it reports one, it uses the default instead, so that the caller may go on checking.
//
// A value may be bare or quoted, because tools that write Volcano's file quote everything.
package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/suggest"
)

// decoder reads the arguments of one plugin or action.
type decoder struct {
	path   *field.Path // of the arguments
	values map[string]runtime.RawExtension
	// known are the keys that were asked for; optional ones too, whether or not they were given.
	known []string
	// successor says what is to be written instead of a key that Volcano has given up; empty for other keys. It may be nil.
	successor func(key string) string
	errs      field.ErrorList
}

func newDecoder(entry *field.Path, values map[string]runtime.RawExtension) *decoder {
	return &decoder{path: entry.Child("arguments"), values: values}
}

// value is that of a key, or the default if it was not given or cannot be parsed.
func value[T any](d *decoder, key string, fallback T, parse func(runtime.RawExtension) (T, error)) T {
	d.known = append(d.known, key)
	given, ok := d.values[key]
	if !ok {
		return fallback
	}
	parsed, err := parse(given)
	if err != nil {
		d.errs = append(d.errs, field.Invalid(d.path.Key(key), given, err.Error()))
		return fallback
	}
	return parsed
}

// section is a decoder of the map that a key has as its value; of one without values if the key was not given. Its errors
// must be joined.
func (d *decoder) section(key string) *decoder {
	s := &decoder{path: d.path.Key(key)}
	s.values = value(d, key, nil, func(v runtime.RawExtension) (map[string]runtime.RawExtension, error) {
		values := map[string]runtime.RawExtension{}
		if json.Unmarshal(v.Raw, &values) != nil || values == nil {
			return nil, errors.New("must be a map")
		}
		return values, nil
	})
	return s
}

// join takes over the errors of sections, with one for each of their keys that nobody asked for.
func (d *decoder) join(sections ...*decoder) {
	for _, s := range sections {
		d.errs = append(d.errs, s.finish(s.path.String())...)
	}
}

// finish returns all errors, with one for each key that nobody asked for. What is the owner of the arguments.
func (d *decoder) finish(what string) field.ErrorList {
	for _, key := range slices.Sorted(maps.Keys(d.values)) {
		switch {
		case slices.Contains(d.known, key):
		case d.successor != nil && d.successor(key) != "":
			d.errs = append(d.errs, field.Forbidden(d.path.Key(key), "Volcano does not read it any more; "+d.successor(key)))
		case len(d.known) == 0:
			d.errs = append(d.errs, field.Forbidden(d.path.Key(key), what+" takes no arguments; remove it"))
		default:
			d.errs = append(d.errs, suggest.UnknownKey(d.path.Key(key), key, d.known))
		}
	}
	return d.errs
}

// scalar is the text of a string or a number; any other value has none.
func scalar(v runtime.RawExtension) string {
	var text string
	if json.Unmarshal(v.Raw, &text) == nil {
		return text
	}
	var number json.Number
	if json.Unmarshal(v.Raw, &number) == nil {
		return number.String()
	}
	return ""
}

var errBool = errors.New("must be true or false")

// Bool is the value of a flag: true or false, bare or quoted.
func Bool(v runtime.RawExtension) (bool, error) {
	var bare *bool
	if json.Unmarshal(v.Raw, &bare) == nil && bare != nil {
		return *bare, nil
	}
	var text string
	if json.Unmarshal(v.Raw, &text) != nil {
		return false, errBool
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, errBool
	}
	return on, nil
}

// optional is a value of which it matters whether it was given.
func optional[V any](parse func(runtime.RawExtension) (V, error)) func(runtime.RawExtension) (*V, error) {
	return func(v runtime.RawExtension) (*V, error) {
		parsed, err := parse(v)
		if err != nil {
			return nil, err
		}
		return &parsed, nil
	}
}

// number parses a finite number of at least least.
func number(least float64) func(runtime.RawExtension) (float64, error) {
	return func(v runtime.RawExtension) (float64, error) {
		text := scalar(v)
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(n, 0) || !(n >= least) {
			return 0, fmt.Errorf("must be a number of at least %v", least)
		}
		return n, nil
	}
}

// numberUpTo parses a number in a range.
func numberUpTo(least, most float64) func(runtime.RawExtension) (float64, error) {
	return func(v runtime.RawExtension) (float64, error) {
		n, err := number(least)(v)
		if err != nil || n > most {
			return 0, fmt.Errorf("must be a number from %v to %v", least, most)
		}
		return n, nil
	}
}

// integer parses a whole number in a range; a most of math.MaxInt stands for no upper limit.
func integer(least, most int) func(runtime.RawExtension) (int, error) {
	return func(v runtime.RawExtension) (int, error) {
		text := scalar(v)
		n, err := strconv.Atoi(text)
		switch {
		case err == nil && n >= least && n <= most:
			return n, nil
		case most == math.MaxInt:
			return 0, fmt.Errorf("must be a whole number of at least %d", least)
		default:
			return 0, fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
	}
}

// duration parses a time span of at least least.
func duration(least time.Duration, limit string) func(runtime.RawExtension) (time.Duration, error) {
	return func(v runtime.RawExtension) (time.Duration, error) {
		text := scalar(v)
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, errors.New(`must be a duration with its unit, such as "10m"`)
		}
		if d < least {
			return 0, errors.New("must be " + limit)
		}
		return d, nil
	}
}

// oneOf parses one of some names.
func oneOf[V ~string](names ...V) func(runtime.RawExtension) (V, error) {
	return func(v runtime.RawExtension) (V, error) {
		if text := V(scalar(v)); slices.Contains(names, text) {
			return text, nil
		}
		quoted := make([]string, len(names))
		for i, name := range names {
			quoted[i] = strconv.Quote(string(name))
		}
		return "", errors.New("must be " + strings.Join(quoted, " or "))
	}
}
