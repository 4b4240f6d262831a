// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/documents"
)

// ReadCRDs reads every YAML file in the top directory of files, in name order. A file may hold several documents;
// anything but CustomResourceDefinitions is an error.
func ReadCRDs(files fs.FS) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("listing CRD files: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, path.Ext(entry.Name())) {
			continue
		}
		content, err := fs.ReadFile(files, entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading CRD file: %w", err)
		}
		parsed, err := parseCRDs(content)
		if err != nil {
			return nil, fmt.Errorf("reading CRD file %s: %w", entry.Name(), err)
		}
		crds = append(crds, parsed...)
	}
	return crds, nil
}

func parseCRDs(content []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for document, err := range documents.In(content) {
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(document, crd); err != nil {
			return nil, err
		}
		switch {
		case crd.Kind == "" && crd.Name == "": // a document of comments
		case crd.GroupVersionKind() != apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"):
			return nil, fmt.Errorf("%s %q: only CustomResourceDefinitions of %s belong in a CRD directory",
				crd.Kind, crd.Name, apiextensionsv1.SchemeGroupVersion)
		default:
			crds = append(crds, crd)
		}
	}
	return crds, nil
}

// CRDs creates or updates the definitions and returns when all of them are established, that is, served.
func CRDs(ctx context.Context, client clientset.Interface, crds []*apiextensionsv1.CustomResourceDefinition) error {
	names := sets.New[string]()
	for _, crd := range crds {
		if err := applyCRD(ctx, client, crd); err != nil {
			return fmt.Errorf("installing CRD %s: %w", crd.Name, err)
		}
		names.Insert(crd.Name)
	}
	if names.Len() == 0 {
		return nil
	}
	return waitEstablished(ctx, client, names)
}

func applyCRD(ctx context.Context, client clientset.Interface, crd *apiextensionsv1.CustomResourceDefinition) error {
	api := client.ApiextensionsV1().CustomResourceDefinitions()
	_, err := api.Create(ctx, crd, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	old, err := api.Get(ctx, crd.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	updated := crd.DeepCopy()
	updated.ResourceVersion = old.ResourceVersion
	_, err = api.Update(ctx, updated, metav1.UpdateOptions{})
	return err
}

func waitEstablished(ctx context.Context, client clientset.Interface, missing sets.Set[string]) error {
	api := client.ApiextensionsV1().CustomResourceDefinitions()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return api.Watch(ctx, o)
		},
	}
	_, err := watchtools.UntilWithSync(ctx, lw, &apiextensionsv1.CustomResourceDefinition{}, nil, func(e watch.Event) (bool, error) {
		crd, ok := e.Object.(*apiextensionsv1.CustomResourceDefinition)
		if !ok {
			return false, nil
		}
		for _, c := range crd.Status.Conditions {
			switch {
			case c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue:
				missing.Delete(crd.Name)
			case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse && missing.Has(crd.Name):
				return false, fmt.Errorf("CRD %s: names not accepted: %s", crd.Name, c.Message)
			}
		}
		return missing.Len() == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for CRDs %v: %w", sets.List(missing), err)
	}
	return nil
}
