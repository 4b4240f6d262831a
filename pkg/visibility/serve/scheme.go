// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// scheme has what is served, codecs its forms. Nothing is stored or converted: there is one version.
var (
	scheme = newScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(s))
	utilruntime.Must(s.SetVersionPriority(v1alpha1.SchemeGroupVersion))
	// What any API server has to know of the core group's first version.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(s, unversioned)
	s.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	for _, r := range resources {
		utilruntime.Must(s.AddFieldLabelConversionFunc(v1alpha1.SchemeGroupVersion.WithKind(r.kind), r.selectable))
	}
	return s
}

// selectable reports whether lists may be narrowed down by a field.
func (r *resource) selectable(field, value string) (string, string, error) {
	if _, ok := r.fields(r.single())[field]; !ok {
		known := fields.Set{}
		for name := range r.fields(r.single()) {
			known[name] = "..."
		}
		return "", "", fmt.Errorf("%s cannot be selected by %q: use one of %s", r.kind, field, known)
	}
	return field, value, nil
}
