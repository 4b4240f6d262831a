// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Args returns the arguments that a plugin is given, if they are of its type and the check finds nothing wrong. Without a check anything is right. The
// error names the type that is wanted, or each field that is wrong.
func Args[T any](obj runtime.Object, check func(*field.Path, *T) error) (*T, error) {
	args, ok := any(obj).(*T)
	if !ok {
		return nil, fmt.Errorf("want args to be of type %s, got %T", reflect.TypeFor[T]().Name(), obj)
	}
	if check == nil {
		return args, nil
	}
	return args, check(nil, args)
}
