// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/configz"
)

// Endpoint is where kube-scheduler serves what registers with configz, behind its authentication and authorization,
// and Entry is the key there under which a ledger is found.
const (
	Endpoint = "/configz"
	Entry    = "caldera-evictions"
)

// Serve has the scheduler's secure port show the ledger, as it is when somebody asks. There is one such ledger in a
// process: it takes the place of one that was served before.
func (l *Ledger) Serve() error {
	configz.Delete(Entry)
	entry, err := configz.New(Entry)
	if err != nil {
		return fmt.Errorf("registering the ledger of evictions: %w", err)
	}
	if err := entry.Set(served{l}); err != nil {
		return fmt.Errorf("registering the ledger of evictions: %w", err)
	}
	return nil
}

// served is a ledger in the form that configz takes.
type served struct{ *Ledger }

var _ runtime.Object = served{}

// GetObjectKind implements runtime.Object.
func (s served) GetObjectKind() schema.ObjectKind { return s }

// GroupVersionKind implements schema.ObjectKind.
func (s served) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(DocumentVersion, DocumentKind)
}

// SetGroupVersionKind implements schema.ObjectKind; the kind is fixed.
func (s served) SetGroupVersionKind(schema.GroupVersionKind) {}

// DeepCopyObject implements runtime.Object. The copy shows the same ledger.
func (s served) DeepCopyObject() runtime.Object { return s }

// MarshalJSON implements json.Marshaler.
func (s served) MarshalJSON() ([]byte, error) { return json.Marshal(s.Document()) }
