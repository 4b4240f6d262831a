// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package schedulerconf

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// ParseLenient reads a file as Volcano does, which ignores keys that it does not know: those are left out, and returned. Any
// other mistake is an error, as for Parse.
func ParseLenient(data []byte) (args *config.BatchQueueArgs, ignored field.ErrorList, err error) {
	for {
		args, err = Parse(data)
		unknown := forbidden(err)
		if len(unknown) == 0 {
			return args, ignored, err
		}
		ignored = append(ignored, unknown...)
		if data, err = without(data, unknown); err != nil {
			return nil, nil, err
		}
	}
}

// forbidden are the errors that are about keys which may not be there.
func forbidden(err error) field.ErrorList {
	var list field.ErrorList
	if aggregate, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		for _, one := range aggregate.Errors() {
			if e, ok := errors.AsType[*field.Error](one); ok && e.Type == field.ErrorTypeForbidden {
				list = append(list, e)
			}
		}
	}
	return list
}

// without returns a file, as JSON, without the keys that errors are about.
func without(data []byte, unknown field.ErrorList) ([]byte, error) {
	content, err := document(data)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(content, &tree); err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	for _, e := range unknown {
		if !remove(tree, steps(e.Field)) {
			return nil, fmt.Errorf("leaving out what Volcano ignores: %w", e)
		}
	}
	return json.Marshal(tree)
}

// steps takes the path of a field apart: "tiers[0].plugins[1].arguments[a.b]" has the steps tiers, 0, plugins, 1, arguments
// and a.b.
func steps(path string) []string {
	var list []string
	for path != "" {
		if rest, bracket := strings.CutPrefix(path, "["); bracket {
			key, after, _ := strings.Cut(rest, "]")
			list, path = append(list, key), after
			continue
		}
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		list, path = append(list, path[:end]), path[end:]
	}
	return list
}

// remove takes a key out of a tree, and reports whether it was there.
func remove(tree any, path []string) bool {
	if len(path) == 0 {
		return false
	}
	switch node := tree.(type) {
	case map[string]any:
		if _, ok := node[path[0]]; ok && len(path) == 1 {
			delete(node, path[0])
			return true
		}
		return remove(node[path[0]], path[1:])
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(node) {
			return remove(node[i], path[1:])
		}
	}
	return false
}
