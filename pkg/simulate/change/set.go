// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Set gives a field of an object a value.
type Set struct {
	// Text is KIND.NAME.FIELD=VALUE, like queue.research.capability.cpu=9. Of objects that have a namespace the name may be NAMESPACE/NAME.
	Text string
	// Namespace is that of names without one.
	Namespace string
}

// settable is a kind of objects with the fields that can be set.
type settable struct {
	// names are those of all objects there are, with namespaces if the kind has some, by their places.
	names func(c *cluster) map[types.NamespacedName]int
	// namespaced: objects of the kind are in namespaces.
	namespaced bool
	// fields are the functions that set them, by name. Those of keyed are followed by a key, as in capability.cpu.
	fields map[string]func(c *cluster, place int, value string) error
	keyed  map[string]func(c *cluster, place int, key, value string) error
}

// kinds are what can be set, by the word before the first dot.
var kinds = map[string]settable{
	"queue": {
		names: namesOf[*volcano.Queue],
		fields: map[string]func(*cluster, int, string) error{
			"weight":      onQueue(func(q *volcano.Queue, v string) error { return whole(&q.Spec.Weight, v) }),
			"priority":    onQueue(func(q *volcano.Queue, v string) error { return whole(&q.Spec.Priority, v) }),
			"parent":      onQueue(func(q *volcano.Queue, v string) error { q.Spec.Parent = v; return nil }),
			"reclaimable": onQueue(func(q *volcano.Queue, v string) error { return truth(&q.Spec.Reclaimable, v) }),
			"state":       onQueue(setState),
		},
		keyed: map[string]func(*cluster, int, string, string) error{
			"capability": onQueueAmount(func(q *volcano.Queue) *corev1.ResourceList { return &q.Spec.Capability }),
			"deserved":   onQueueAmount(func(q *volcano.Queue) *corev1.ResourceList { return &q.Spec.Deserved }),
			"guarantee":  onQueueAmount(func(q *volcano.Queue) *corev1.ResourceList { return &q.Spec.Guarantee.Resource }),
		},
	},
	"podgroup": {
		names: namesOf[*volcano.PodGroup], namespaced: true,
		fields: map[string]func(*cluster, int, string) error{
			"minMember": func(c *cluster, place int, v string) error {
				return whole(&edit[*volcano.PodGroup](c, place).Spec.MinMember, v)
			},
			"queue": func(c *cluster, place int, v string) error {
				if v == "" {
					return errors.New("the value is empty: write the name of a queue")
				}
				edit[*volcano.PodGroup](c, place).Spec.Queue = v
				return nil
			},
		},
	},
	"node": {
		names: namesOf[*corev1.Node],
		fields: map[string]func(*cluster, int, string) error{
			"unschedulable": func(c *cluster, place int, v string) error {
				may, err := strconv.ParseBool(v)
				if err != nil {
					return fmt.Errorf(`the value is %q: write "true" or "false"`, v)
				}
				edit[*corev1.Node](c, place).Spec.Unschedulable = may
				return nil
			},
		},
		keyed: map[string]func(*cluster, int, string, string) error{
			"allocatable": func(c *cluster, place int, key, v string) error {
				return amount(&edit[*corev1.Node](c, place).Status.Allocatable, key, v)
			},
			"labels": func(c *cluster, place int, key, v string) error {
				if problems := validation.IsValidLabelValue(v); len(problems) > 0 {
					return fmt.Errorf("the value is %q: %s", v, strings.Join(problems, "; "))
				}
				n := edit[*corev1.Node](c, place)
				if v == "" {
					delete(n.Labels, key)
					return nil
				}
				if n.Labels == nil {
					n.Labels = map[string]string{}
				}
				n.Labels[key] = v
				return nil
			},
		},
	},
}

func namesOf[T scenario.Object](c *cluster) map[types.NamespacedName]int {
	names := map[types.NamespacedName]int{}
	for i, o := range all[T](c) {
		names[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}] = i
	}
	return names
}

func onQueue(set func(*volcano.Queue, string) error) func(*cluster, int, string) error {
	return func(c *cluster, place int, v string) error { return set(edit[*volcano.Queue](c, place), v) }
}

func onQueueAmount(of func(*volcano.Queue) *corev1.ResourceList) func(*cluster, int, string, string) error {
	return func(c *cluster, place int, key, v string) error {
		return amount(of(edit[*volcano.Queue](c, place)), key, v)
	}
}

func setState(q *volcano.Queue, v string) error {
	state := volcano.QueueState(v)
	if state != volcano.QueueStateOpen && state != volcano.QueueStateClosed {
		return fmt.Errorf("the value is %q: write %s or %s", v, volcano.QueueStateOpen, volcano.QueueStateClosed)
	}
	q.Status.State = state
	return nil
}

func whole(field *int32, v string) error {
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		return fmt.Errorf("the value is %q: write a whole number", v)
	}
	*field = int32(n)
	return nil
}

// truth sets a field that may say nothing; so it does for an empty value.
func truth(field **bool, v string) error {
	if v == "" {
		*field = nil
		return nil
	}
	is, err := strconv.ParseBool(v)
	if err != nil {
		return fmt.Errorf(`the value is %q: write "true" or "false", or nothing`, v)
	}
	*field = &is
	return nil
}

// amount sets an amount of a list. An empty value takes it out.
func amount(list *corev1.ResourceList, name, v string) error {
	if v == "" {
		delete(*list, corev1.ResourceName(name))
		return nil
	}
	quantity, err := resource.ParseQuantity(v)
	if err != nil || quantity.Sign() < 0 {
		return fmt.Errorf("the value is %q: write a quantity of %s that is not negative, like 8 or 16Gi, or nothing to take it out", v, name)
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[corev1.ResourceName(name)] = quantity
	return nil
}

// errForm: a text is not of the form.
var errForm = errors.New("write KIND.NAME.FIELD=VALUE, like queue.research.capability.cpu=9")

func (s Set) apply(c *cluster) error {
	if err := s.set(c); err != nil {
		return fmt.Errorf("setting %q: %w", s.Text, err)
	}
	return nil
}

func (s Set) set(c *cluster) error {
	path, value, ok := strings.Cut(s.Text, "=")
	kind, rest, dotted := strings.Cut(path, ".")
	if !ok || !dotted {
		return errForm
	}
	k, ok := kinds[kind]
	if !ok {
		return fmt.Errorf("%s cannot be set: use one of %s", kind, sorted(kinds))
	}
	place, field, err := s.object(c, k, kind, rest)
	if err != nil {
		return err
	}
	if set, ok := k.fields[field]; ok {
		return set(c, place, value)
	}
	name, key, _ := strings.Cut(field, ".")
	set, ok := k.keyed[name]
	switch {
	case !ok:
		all := slices.Sorted(maps.Keys(k.fields))
		for name := range k.keyed {
			all = append(all, name+".KEY")
		}
		slices.Sort(all)
		return fmt.Errorf("field %s of a %s cannot be set: use one of %s", name, kind, strings.Join(all, ", "))
	case key == "":
		return fmt.Errorf("name what of %s is set, as in %s.KEY", name, name)
	}
	return set(c, place, key, value)
}

// object finds the object that a path begins with. Its name may have dots: the longest name that there is counts.
func (s Set) object(c *cluster, k settable, kind, rest string) (place int, field string, err error) {
	names := k.names(c)
	for end := strings.LastIndexByte(rest, '.'); end > 0; end = strings.LastIndexByte(rest[:end], '.') {
		name := types.NamespacedName{Name: rest[:end]}
		if k.namespaced {
			name = named(rest[:end], s.Namespace)
		}
		if place, ok := names[name]; ok {
			return place, rest[end+1:], nil
		}
	}
	var known []string
	for name := range names {
		known = append(known, text(name))
	}
	given, _, ok := strings.Cut(rest, ".")
	if !ok {
		return 0, "", errForm
	}
	name := types.NamespacedName{Name: given}
	if k.namespaced {
		name = named(given, s.Namespace)
	}
	slices.Sort(known)
	return 0, "", fmt.Errorf("there is no %s %s%s", kind, text(name), meant(text(name), known))
}

func sorted[V any](m map[string]V) string { return strings.Join(slices.Sorted(maps.Keys(m)), ", ") }
