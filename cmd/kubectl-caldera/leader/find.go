// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// Find reads a job by its name, or by the name of its object if that is not the same.
func (c *Client) Find(ctx context.Context, namespace, name string) (*v1alpha1.JobView, error) {
	job := &v1alpha1.JobView{}
	err := c.Get(ctx, v1alpha1.JobViews, namespace, name, job)
	if !apierrors.IsNotFound(err) {
		return job, err
	}
	list := &v1alpha1.JobViewList{}
	called := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("status.object.name", name).String()}
	if err := c.List(ctx, v1alpha1.JobViews, namespace, called, list); err != nil {
		return nil, err
	}
	of := list.Items
	switch len(of) {
	case 0:
		return nil, err
	case 1:
		return &of[0], nil
	}
	names := make([]string, len(of))
	for i := range of {
		names[i] = of[i].Name
	}
	return nil, fmt.Errorf("several jobs of namespace %s are called %s: name one of %s", namespace, name, strings.Join(names, ", "))
}
