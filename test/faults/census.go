// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing/synctest"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// counted are the packages of which the parts of a scheduler are counted that grow with what it has seen.
var counted = []string{
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch", "github.com/caldera-scheduler/caldera/pkg/status",
	"github.com/caldera-scheduler/caldera/pkg/queuegate", "k8s.io/client-go/util/workqueue",
}

// census is what a part of a scheduler remembers.
type census struct {
	// entries are how many things it does, by field; jobs the names of those among them, likewise.
	entries map[string]int
	jobs    map[string][]string
	visited map[uintptr]bool
}

// take counts what is in the fields of a part, and of the parts that it consists of. Nothing else may run meanwhile.
func take(part any) census {
	c := census{map[string]int{}, map[string][]string{}, map[uintptr]bool{}}
	c.count("", reflect.ValueOf(part))
	return c
}

func (c census) count(name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if c.enter(v) {
			c.count(name, v.Elem())
		}
	case reflect.Struct:
		if ours(v.Type()) {
			for i := range v.NumField() {
				c.count(strings.TrimPrefix(name+"."+v.Type().Field(i).Name, "."), v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			c.count(name, v.Index(i))
		}
	case reflect.Slice:
		c.entries[name] += v.Len()
	case reflect.Map:
		c.entries[name] += v.Len()
		c.name(name, v)
	}
}

// enter reports whether there is something behind a pointer, or in an interface, that is to be counted and was not yet.
func (c census) enter(v reflect.Value) bool {
	switch {
	case v.IsNil():
		return false
	case v.Kind() == reflect.Interface:
		return v.Elem().Kind() == reflect.Pointer
	case c.visited[v.Pointer()] || !ours(v.Type().Elem()):
		return false
	}
	c.visited[v.Pointer()] = true
	return true
}

// name notes the jobs that a map has, if it is by jobs.
func (c census) name(field string, v reflect.Value) {
	if v.Type().Key() != reflect.TypeFor[model.JobKey]() {
		return
	}
	for _, key := range v.MapKeys() {
		c.jobs[field] = append(c.jobs[field], key.FieldByName("Name").String())
	}
}

// ours reports whether what is in a type is counted.
func ours(t reflect.Type) bool { return slices.Contains(counted, t.PkgPath()) }

// census counts what the parts of a process remember, by part. That takes none of their locks: so it counts only where one goroutine runs at a
// time, which a player sees to, and all others in the bubble wait.
func (p *process) census() map[string]census {
	if os.Getenv(childVariable) == "" {
		return nil
	}
	synctest.Wait()
	return map[string]census{"dispatcher": take(p.core.Dispatcher), "status writer": take(p.core.Writer), "gates": take(p.core.Gates)}
}

// remembers says what a process remembers that it has no use for; empty if nothing. One that does not lead has use for nothing but the accounts of
// the jobs that there are. One that does may remember jobs, and only those.
func (p *process) remembers(exists func(job string) bool) string {
	for part, c := range p.census() {
		for _, field := range slices.Sorted(maps.Keys(c.entries)) {
			entries := c.entries[field] - p.fresh[part].entries[field]
			for _, job := range c.jobs[field] {
				if !exists(job) {
					return fmt.Sprintf("%s: the %s still knows %s, which is gone, in %q", p.line.name, part, job, field)
				}
				entries--
			}
			if !closed(p.leading) && (entries > 0 || len(c.jobs[field]) > 0 && field != "booked") {
				return fmt.Sprintf("%s: the %s remembers %d things in %q, and does not lead", p.line.name, part, c.entries[field], field)
			}
		}
	}
	return ""
}
