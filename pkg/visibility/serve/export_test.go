// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

// Store is what an API server needs of a resource to answer requests that read.
type Store interface {
	rest.Getter
	rest.Lister
}

// StoreOf is a resource of some views; nil for a name that none has.
func StoreOf(name string, views *visibility.Views) Store {
	for _, r := range resources {
		if r.name == name {
			return &storage{r, views}
		}
	}
	return nil
}

// Selectable returns an error if lists of a resource cannot be narrowed down by a field.
func Selectable(name, field string) error {
	_, _, err := StoreOf(name, nil).(*storage).selectable(field, "")
	return err
}

// Codecs are the forms in which views are answered.
func Codecs() serializer.CodecFactory { return codecs }
