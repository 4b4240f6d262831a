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
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/caldera-scheduler/caldera/internal/testing/reference"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
)

const typesOfArguments = "pkg/apis/config/v1"

// pluginArguments is the page of the arguments of plugins in a KubeSchedulerConfiguration.
func pluginArguments() (*reference.Page, error) {
	said, err := read(typesOfArguments)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	p := reference.New("plugin-arguments.md", "Arguments of plugins", "the types in "+typesOfArguments+", their comments and defaults")
	p.Say("What `pluginConfig` of a KubeSchedulerConfiguration may say about each plugin. A `volcano-scheduler.conf` has names of its own: " +
		"[volcano-arguments.md](volcano-arguments.md). Durations are written with their unit, such as `90s` or `10m`.")
	p.Code("yaml", "pluginConfig:\n- name: Gang\n  args: {bindConcurrency: 32}")
	of := maps.Clone(scheme.KnownTypes(v1.SchemeGroupVersion))
	for _, name := range slices.Sorted(slices.Values(names.All)) {
		p.Section(2, name)
		what := fmt.Sprintf("[What it does](../../pkg/plugins/%s/README.md).", strings.ToLower(name))
		t, ok := of[name+"Args"]
		if !ok {
			p.Say(what + " It takes no arguments.")
			continue
		}
		delete(of, name+"Args")
		p.Say(what)
		rows, err := newFields(said, scheme, t).rows()
		if err != nil {
			return nil, err
		}
		p.Table([]string{"field", "type", "default", "what it is"}, rows)
	}
	for name := range of {
		if strings.HasSuffix(name, "Args") {
			return nil, fmt.Errorf("%s are arguments of no plugin in pkg/plugins/names", name)
		}
	}
	return p, nil
}

// fields tells of the fields of arguments.
type fields struct {
	said *comments
	// defaults are the arguments when nothing is given, full those when each map has one entry of which nothing is given.
	defaults, full reflect.Value
	told           [][]string
}

func newFields(said *comments, scheme *runtime.Scheme, t reflect.Type) *fields {
	f := &fields{said: said, defaults: reflect.New(t), full: reflect.New(t)}
	fill(f.full.Elem())
	for _, v := range []reflect.Value{f.defaults, f.full} {
		scheme.Default(v.Interface().(runtime.Object))
	}
	return f
}

// entry is the key of the entry that maps are given.
const entry = "<name>"

// fill gives each map of structures an entry.
func fill(v reflect.Value) {
	for _, f := range v.Fields() {
		switch {
		case f.Kind() == reflect.Map && f.Type().Elem().Kind() == reflect.Struct && f.Type().Elem().PkgPath() == v.Type().PkgPath():
			f.Set(reflect.MakeMap(f.Type()))
			f.SetMapIndex(reflect.ValueOf(entry), reflect.Zero(f.Type().Elem()))
		case f.Kind() == reflect.Struct && f.Type().PkgPath() == v.Type().PkgPath():
			fill(f)
		}
	}
}

func (f *fields) rows() ([][]string, error) {
	err := f.add("", f.defaults.Elem(), f.full.Elem())
	return f.told, err
}

// add tells of the fields of a structure at a path.
func (f *fields) add(path string, is, full reflect.Value) error {
	t := is.Type()
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, tagged := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous || !tagged && name == "" {
			continue
		}
		comment := f.said.fields[t.Name()+"."+field.Name]
		if comment == "" {
			return fmt.Errorf("%s.%s has no comment", t.Name(), field.Name)
		}
		value, err := shownDefault(is.Field(i), strings.Contains(options, "omit"))
		if err != nil {
			return err
		}
		kind, nested := described(field.Type)
		f.told = append(f.told, []string{
			reference.Quote(path + name), kind, value, reference.Sentence(inFile(t, of(field.Name, comment))),
		})
		if err := f.below(path+name, nested, is.Field(i), full.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// inFile is a comment in which other fields of the structure are called as in files. Those of one word are taken for words.
func inFile(t reflect.Type, comment string) string {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.ToLower(field.Name[1:]) != field.Name[1:] && name != "" {
			comment = regexp.MustCompile(`\b`+field.Name+`\b`).ReplaceAllString(comment, reference.Quote(name))
		}
	}
	return comment
}

// below tells of the fields of a structure that a field holds, or holds a list or map of.
func (f *fields) below(path string, nested reflect.Type, is, full reflect.Value) error {
	switch {
	case nested == nil:
		return nil
	case is.Kind() == reflect.Slice:
		return f.add(path+"[].", reflect.Zero(nested), reflect.Zero(nested))
	case is.Kind() == reflect.Map:
		one := full.MapIndex(reflect.ValueOf(entry))
		return f.add(path+"."+entry+".", one, one)
	default:
		return f.add(path+".", is, full)
	}
}

// described is a type in words, with that of the structures in it if these have fields of their own to tell of.
func described(t reflect.Type) (words string, nested reflect.Type) {
	if t.Kind() == reflect.Pointer {
		if plugin, ok := strings.CutSuffix(t.Elem().Name(), "Args"); ok {
			return fmt.Sprintf("those of [%s](#%s)", plugin, strings.ToLower(plugin)), nil
		}
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return "duration", nil
	case reflect.TypeFor[corev1.ResourceList]():
		return "map to quantities", nil
	case reflect.TypeFor[v1.TierPlugin]():
		return "plugin", nil
	case reflect.TypeFor[v1.Arguments]():
		return "map to any values", nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return "bool", nil
	case reflect.Int32, reflect.Int64:
		return "whole number", nil
	case reflect.Float64:
		return "number", nil
	case reflect.String:
		return "text", nil
	case reflect.Slice:
		words, nested = described(t.Elem())
		return "list of " + plural(words), nested
	case reflect.Map:
		words, nested = described(t.Elem())
		return "map to " + plural(words), nested
	default:
		return "map", t
	}
}

func plural(words string) string {
	if head, tail, ok := strings.Cut(words, " to "); ok {
		return head + "s to " + tail
	}
	return words + "s"
}

// shownDefault is the default of a field as it is written in a file. One that may not be left out has none.
func shownDefault(v reflect.Value, optional bool) (string, error) {
	if !optional {
		return "required", nil
	}
	if v.Kind() == reflect.Pointer && v.IsNil() || v.Kind() != reflect.Bool && v.Kind() != reflect.Int64 && v.Kind() != reflect.Float64 && v.IsZero() {
		return "", nil
	}
	if k := v.Kind(); k == reflect.Struct && v.Type() != reflect.TypeFor[metav1.Duration]() {
		return "", nil // Its fields have them.
	}
	data, err := json.Marshal(v.Interface())
	if err != nil {
		return "", fmt.Errorf("writing a default: %w", err)
	}
	return reference.Quote(short(strings.Trim(string(data), `"`))), nil
}

// short is a duration as people write it: 10m0s is 10m.
func short(text string) string {
	for _, zeros := range []string{"m0s", "h0m"} {
		if head, ok := strings.CutSuffix(text, zeros); ok {
			text = head + zeros[:1]
		}
	}
	return text
}
