// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

// resource is one kind of views.
type resource struct {
	name, singular, kind string
	short                []string
	namespaced           bool
	single, list         func() runtime.Object
	// all returns the views of a namespace, all of them if it is empty, in an order that stays. What it returns is shared, and never changed.
	all func(v *visibility.Views, namespace string) []runtime.Object
	// one returns a view by its name, nil if there is none. It is nil itself where all of them are gone through for that.
	one func(v *visibility.Views, namespace, name string) runtime.Object
	// fields are what a list can be narrowed down by.
	fields func(object runtime.Object) fields.Set
	// columns are those of a table, cells the same for one view at a time.
	columns []metav1.TableColumnDefinition
	cells   func(object runtime.Object, now time.Time) []any
}

// storage is a resource as an API server takes it.
type storage struct {
	*resource
	views *visibility.Views
}

var (
	_ rest.Storage              = &storage{}
	_ rest.Scoper               = &storage{}
	_ rest.Getter               = &storage{}
	_ rest.Lister               = &storage{}
	_ rest.SingularNameProvider = &storage{}
	_ rest.ShortNamesProvider   = &storage{}
)

// New implements rest.Storage.
func (s *storage) New() runtime.Object { return s.single() }

// Destroy implements rest.Storage. There is nothing to clean up.
func (s *storage) Destroy() {}

// NewList implements rest.Lister.
func (s *storage) NewList() runtime.Object { return s.list() }

// NamespaceScoped implements rest.Scoper.
func (s *storage) NamespaceScoped() bool { return s.namespaced }

// GetSingularName implements rest.SingularNameProvider.
func (s *storage) GetSingularName() string { return s.singular }

// ShortNames implements rest.ShortNamesProvider.
func (s *storage) ShortNames() []string { return s.short }

// Get implements rest.Getter.
func (s *storage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if object := s.find(request.NamespaceValue(ctx), name); object != nil {
		// Whoever encodes it writes its kind into it. In a list that happens to a copy.
		return object.DeepCopyObject(), nil
	}
	return nil, apierrors.NewNotFound(v1alpha1.SchemeGroupVersion.WithResource(s.name).GroupResource(), name)
}

// find returns a view by its name, or nil.
func (s *storage) find(namespace, name string) runtime.Object {
	if s.one != nil {
		return s.one(s.views, namespace, name)
	}
	for _, object := range s.all(s.views, namespace) {
		if m, err := meta.Accessor(object); err == nil && m.GetName() == name {
			return object
		}
	}
	return nil
}

// List implements rest.Lister. A list that is continued begins behind the last view of the page before, as things are by then.
func (s *storage) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	if o == nil {
		o = &internalversion.ListOptions{}
	}
	after, err := position(o.Continue)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	list := s.list()
	var items []runtime.Object
	more, last := int64(0), ""
	for _, object := range s.all(s.views, request.NamespaceValue(ctx)) {
		key, ok := s.selected(object, o)
		switch {
		case after != "":
			if key == after {
				after = ""
			}
		case !ok:
		case o.Limit > 0 && int64(len(items)) == o.Limit:
			more++
		default:
			items, last = append(items, object), key
		}
	}
	if after != "" {
		// What the page before ended with is gone.
		return nil, apierrors.NewResourceExpired("the list has changed since the page before: begin again, without continue")
	}
	if more > 0 {
		m, err := meta.ListAccessor(list)
		if err != nil {
			return nil, err
		}
		m.SetContinue(base64.RawURLEncoding.EncodeToString([]byte(last)))
		m.SetRemainingItemCount(&more)
	}
	return list, meta.SetList(list, items)
}

// position is the key of the last view of the page before; empty for the first page.
func position(token string) (string, error) {
	key, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", fmt.Errorf("continue is %q, which no list has said: begin again, without it", token)
	}
	return string(key), nil
}

// selected returns the key of a view, and whether the options ask for it.
func (s *storage) selected(object runtime.Object, o *internalversion.ListOptions) (key string, ok bool) {
	m, err := meta.Accessor(object)
	if err != nil {
		return "", false
	}
	ok = (o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(m.GetLabels()))) &&
		(o.FieldSelector == nil || o.FieldSelector.Empty() || o.FieldSelector.Matches(s.fields(object)))
	return m.GetNamespace() + "/" + m.GetName(), ok
}

// ConvertToTable implements rest.TableConvertor.
func (s *storage) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = s.columns
	}
	now := s.views.Now()
	add := func(object runtime.Object) error {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: s.cells(object, now), Object: runtime.RawExtension{Object: object}})
		return nil
	}
	if !meta.IsListType(object) {
		return table, add(object)
	}
	if m, err := meta.ListAccessor(object); err == nil {
		table.Continue, table.RemainingItemCount = m.GetContinue(), m.GetRemainingItemCount()
	}
	return table, meta.EachListItem(object, add)
}
