// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package suspend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	native "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// object is an object of the cluster, and the resource that it is of.
type object struct {
	*unstructured.Unstructured
	resource schema.GroupVersionResource
}

// String names the object in a sentence.
func (o object) String() string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return o.GetKind() + " " + name
}

// short names the object as kubectl does what it has changed.
func (o object) short() string {
	k := o.GroupVersionKind()
	return strings.ToLower(k.Kind) + "." + k.Group + "/" + o.GetName()
}

// switchable is an object that can be suspended.
type switchable struct {
	object
	*kind
	// above controls the object without being able to suspend it, and may undo what is done; nil for none.
	above *object
}

// String names the object in a sentence.
func (s *switchable) String() string { return s.object.String() }

// cluster reads and changes objects of one namespace with the user's rights.
type cluster struct {
	client    dynamic.Interface
	kube      kubernetes.Interface
	mapper    meta.RESTMapper
	namespace string
}

func newCluster(f *leader.Flags, namespace string) (*cluster, error) {
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	c := &cluster{namespace: namespace}
	if c.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	c.mapper, err = f.ToRESTMapper()
	return c, err
}

// read reads an object. Its version need not be served any more.
func (c *cluster) read(ctx context.Context, apiVersion, kind, name string) (object, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return object{}, err
	}
	mapping, err := c.mapper.RESTMapping(version.WithKind(kind).GroupKind())
	if err != nil {
		return object{}, fmt.Errorf("finding %s %s/%s: %w", kind, c.namespace, name, err)
	}
	var of dynamic.ResourceInterface = c.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		of = c.client.Resource(mapping.Resource).Namespace(c.namespace)
	}
	o, err := of.Get(ctx, name, metav1.GetOptions{})
	return object{o, mapping.Resource}, err
}

// tallest bounds how many owners are gone through, one of the other. Objects can name each other in a circle.
const tallest = 20

// above are an object and those that control it, one the other, the topmost last.
func (c *cluster) above(ctx context.Context, o object) ([]object, error) {
	chain := []object{o}
	for len(chain) <= tallest {
		last := chain[len(chain)-1]
		ref := metav1.GetControllerOf(last)
		if ref == nil {
			return chain, nil
		}
		next, err := c.read(ctx, ref.APIVersion, ref.Kind, ref.Name)
		switch {
		case apierrors.IsNotFound(err), err == nil && next.GetUID() != ref.UID:
			return nil, fmt.Errorf("the owner of %s, %s %s with uid %s, is gone: it is about to be deleted, too", last, ref.Kind, ref.Name, ref.UID)
		case err != nil:
			return nil, fmt.Errorf("reading the owner of %s: %w", last, err)
		}
		chain = append(chain, next)
	}
	return nil, fmt.Errorf("%s has more than %d owners, one of the other: see whether their ownerReferences are a circle", o, tallest)
}

// top is the topmost of an object and those above it that can be suspended; nil if none can.
func (c *cluster) top(ctx context.Context, o object) (*switchable, []object, error) {
	chain, err := c.above(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	for i, o := range slices.Backward(chain) {
		k := kindOf(o)
		if k == nil {
			continue
		}
		s := &switchable{object: o, kind: k}
		if i+1 < len(chain) && !startsOthers(chain[i+1]) {
			s.above = &chain[i+1]
		}
		return s, chain, nil
	}
	return nil, chain, nil
}

// topOf is the topmost that can be suspended above an object, or above the pods of a group.
func (c *cluster) topOf(ctx context.Context, o object) (*switchable, error) {
	s, chain, err := c.top(ctx, o)
	if err != nil || s != nil {
		return s, err
	}
	last := chain[len(chain)-1]
	source, isGroup := sources[last.GroupVersionKind().GroupKind()]
	if !isGroup {
		return nil, errors.New(advice(last))
	}
	return c.topOfPods(ctx, last, model.JobKey{Source: source, Namespace: c.namespace, Name: last.GetName()})
}

// sources are the kinds of groups that pods name.
var sources = map[schema.GroupKind]model.Source{
	{Group: volcano.GroupName, Kind: "PodGroup"}:      model.FromVolcano,
	{Group: coscheduling.GroupName, Kind: "PodGroup"}: model.FromCoscheduling,
	{Group: native.GroupName, Kind: "PodGroup"}:       model.FromNative,
}

// topOfPods is the one owner of all pods of a group that have owners which can be suspended.
func (c *cluster) topOfPods(ctx context.Context, group object, key model.JobKey) (*switchable, error) {
	asked, found := map[types.UID]bool{}, map[types.UID]*switchable{}
	instead := group
	page := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.kube.CoreV1().Pods(c.namespace).List(ctx, o)
	}
	err := pager.New(page).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		pod := o.(*corev1.Pod)
		ref := metav1.GetControllerOf(pod)
		if model.JobByMarks(pod) != key || ref == nil || asked[ref.UID] {
			return nil
		}
		asked[ref.UID] = true
		owner, err := c.read(ctx, ref.APIVersion, ref.Kind, ref.Name)
		if apierrors.IsNotFound(err) || err == nil && owner.GetUID() != ref.UID {
			return nil
		} else if err != nil {
			return err
		}
		s, chain, err := c.top(ctx, owner)
		switch {
		case err != nil:
			return err
		case s == nil:
			instead = chain[len(chain)-1]
		default:
			found[s.GetUID()] = s
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("finding the owners of the pods of %s: %w", group, err)
	}
	return only(group, found, instead)
}

// only is the one owner of the pods of a group. Of those that cannot be suspended one is told instead.
func only(group object, found map[types.UID]*switchable, instead object) (*switchable, error) {
	var all []*switchable
	for _, s := range found {
		all = append(all, s)
	}
	switch len(all) {
	case 0:
		return nil, errors.New(advice(instead))
	case 1:
		return all[0], nil
	}
	return nil, fmt.Errorf("the pods of %s have several owners: %s; name one of them", group, list(all))
}

// named are what can be suspended of this name, and what is above it. What may not be read is told if nothing was found.
func (c *cluster) named(ctx context.Context, name string) (found []*switchable, refused error) {
	known := map[types.UID]bool{}
	for i := range kinds {
		o, err := c.read(ctx, schema.GroupVersion{Group: kinds[i].Group}.String(), kinds[i].Kind, name)
		var s *switchable
		if err == nil {
			s, _, err = c.top(ctx, o)
		}
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		case err != nil:
			refused = errors.Join(refused, err)
		case !known[s.GetUID()]:
			known[s.GetUID()] = true
			found = append(found, s)
		}
	}
	return found, refused
}
