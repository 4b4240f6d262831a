// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
)

// Pods of one job are alike, and each is decoded by itself: equal maps of amounts and labels, equal names of nodes and images take half the memory of a
// scheduler that knows of 100,000 pods, and the collector walks through all of them. Here they are shared before anybody sees the object, and what nobody reads
// is dropped. What informers hand out is never written to, so that nobody can tell.

// How many different values of a kind are remembered at a time. The list at the start comes in the order of names, in which pods that are alike follow each
// other. Nodes do not: the texts have room for the names of as many as upstream is made for.
const (
	sharedTexts = 1 << 14
	sharedLists = 1 << 9
)

// shareObjects has the informers of pods and nodes share what their objects have in common. It must be called before the informers run.
func shareObjects(factory informers.SharedInformerFactory) error {
	pods, nodes := newSharer(), newSharer()
	if err := factory.Core().V1().Pods().Informer().SetTransform(pods.transform); err != nil {
		return fmt.Errorf("having pods share what is equal: %w", err)
	}
	if err := factory.Core().V1().Nodes().Informer().SetTransform(nodes.transform); err != nil {
		return fmt.Errorf("having nodes share what is equal: %w", err)
	}
	return nil
}

// sharer replaces parts of objects by equal ones that it has seen lately.
type sharer struct {
	seed maphash.Seed

	mu          sync.Mutex // guards the rest
	texts       table[string]
	labels      table[map[string]string]
	amounts     table[corev1.ResourceList]
	tolerations table[[]corev1.Toleration]
	flags       lastPointers
}

// lastPointers are those that were seen last.
type lastPointers struct {
	grace    *int64
	priority *int32
	links    *bool
	policy   *corev1.PreemptionPolicy
}

// noSecurity is the security context of pods that ask for none, which the API server writes into each of them.
var noSecurity = &corev1.PodSecurityContext{}

func newSharer() *sharer {
	return &sharer{
		seed: maphash.MakeSeed(), texts: make(table[string], sharedTexts), labels: make(table[map[string]string], sharedLists),
		amounts: make(table[corev1.ResourceList], sharedLists), tolerations: make(table[[]corev1.Toleration], sharedLists),
	}
}

// transform is a cache.TransformFunc. An informer calls it twice for each object of its first list: one without managed fields has been here before.
func (s *sharer) transform(o any) (any, error) {
	object, ok := o.(metav1.Object)
	if !ok || object.GetManagedFields() == nil {
		return o, nil
	}
	object.SetManagedFields(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := o.(type) {
	case *corev1.Pod:
		s.pod(o)
	case *corev1.Node:
		s.node(o)
	}
	return o, nil
}

func (s *sharer) pod(p *corev1.Pod) {
	s.meta(&p.ObjectMeta)
	spec := &p.Spec
	for _, text := range []*string{
		&spec.NodeName, &spec.SchedulerName, &spec.ServiceAccountName, &spec.DeprecatedServiceAccount, &spec.PriorityClassName,
		(*string)(&spec.RestartPolicy), (*string)(&spec.DNSPolicy), (*string)(&p.Status.Phase), (*string)(&p.Status.QOSClass),
		&p.Status.HostIP, &p.Status.NominatedNodeName,
	} {
		s.text(text)
	}
	s.maps(&spec.NodeSelector)
	s.list(&spec.Overhead)
	s.tolerate(&spec.Tolerations)
	s.containers(spec.InitContainers)
	s.containers(spec.Containers)
	sharePointer(&s.flags.grace, &spec.TerminationGracePeriodSeconds)
	sharePointer(&s.flags.priority, &spec.Priority)
	sharePointer(&s.flags.links, &spec.EnableServiceLinks)
	sharePointer(&s.flags.policy, &spec.PreemptionPolicy)
	if spec.SecurityContext != nil && spec.SecurityContext.Size() == 0 {
		spec.SecurityContext = noSecurity
	}
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		s.text((*string)(&c.Type))
		s.text((*string)(&c.Status))
		s.text(&c.Reason)
	}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		for _, text := range []*string{&c.Name, &c.Image, &c.ImageID} {
			s.text(text)
		}
		s.list(&c.AllocatedResources)
		if c.Resources != nil {
			s.list(&c.Resources.Requests)
			s.list(&c.Resources.Limits)
		}
	}
}

func (s *sharer) node(n *corev1.Node) {
	s.meta(&n.ObjectMeta)
	s.list(&n.Status.Capacity)
	s.list(&n.Status.Allocatable)
	for i := range n.Status.Images {
		for k := range n.Status.Images[i].Names {
			s.text(&n.Status.Images[i].Names[k])
		}
	}
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		for _, text := range []*string{(*string)(&c.Type), (*string)(&c.Status), &c.Reason, &c.Message} {
			s.text(text)
		}
	}
}

func (s *sharer) meta(m *metav1.ObjectMeta) {
	s.text(&m.Namespace)
	s.text(&m.GenerateName)
	s.maps(&m.Labels)
	s.maps(&m.Annotations)
	for i := range m.OwnerReferences {
		o := &m.OwnerReferences[i]
		for _, text := range []*string{&o.APIVersion, &o.Kind, &o.Name, (*string)(&o.UID)} {
			s.text(text)
		}
	}
}

func (s *sharer) containers(containers []corev1.Container) {
	for i := range containers {
		c := &containers[i]
		for _, text := range []*string{
			&c.Name, &c.Image, &c.WorkingDir, &c.TerminationMessagePath, (*string)(&c.TerminationMessagePolicy), (*string)(&c.ImagePullPolicy),
		} {
			s.text(text)
		}
		for _, words := range [][]string{c.Command, c.Args} {
			for k := range words {
				s.text(&words[k])
			}
		}
		for k := range c.Env {
			s.text(&c.Env[k].Name)
			s.text(&c.Env[k].Value)
		}
		s.list(&c.Resources.Requests)
		s.list(&c.Resources.Limits)
	}
}

func (s *sharer) text(t *string) {
	if *t != "" {
		shareIn(s.texts, s.hash(*t), t, func(a, b string) bool { return a == b })
	}
}

// maps shares a map whose keys and values are, for most, those of many objects.
func (s *sharer) maps(m *map[string]string) {
	if len(*m) == 0 {
		return
	}
	var sum uint64
	for key, value := range *m {
		sum += s.hash(key) ^ 31*s.hash(value)
	}
	shareIn(s.labels, sum, m, maps.Equal)
}

// list shares amounts that are equal and written alike.
func (s *sharer) list(l *corev1.ResourceList) {
	if len(*l) == 0 {
		return
	}
	var sum uint64
	for name, quantity := range *l {
		sum += s.hash(string(name)) ^ 31*uint64(quantity.MilliValue())
	}
	shareIn(s.amounts, sum, l, maps.Equal)
}

func (s *sharer) tolerate(list *[]corev1.Toleration) {
	if len(*list) == 0 {
		return
	}
	var sum uint64
	for i := range *list {
		sum = 31*sum + s.hash((*list)[i].Key)
	}
	shareIn(s.tolerations, sum, list, func(a, b []corev1.Toleration) bool { return slices.EqualFunc(a, b, sameToleration) })
}

// sameToleration reports whether two tolerations say the same in the same words.
func sameToleration(a, b corev1.Toleration) bool {
	if (a.TolerationSeconds == nil) != (b.TolerationSeconds == nil) || a.TolerationSeconds != nil && *a.TolerationSeconds != *b.TolerationSeconds {
		return false
	}
	a.TolerationSeconds, b.TolerationSeconds = nil, nil
	return a == b
}

func (s *sharer) hash(text string) uint64 { return maphash.String(s.seed, text) }

// table has values that were seen lately, each at the place that its hash says: another one that belongs there takes its place.
type table[T any] []T

// shareIn replaces a value by the equal one of a table, or puts it there.
func shareIn[T any](t table[T], hash uint64, value *T, same func(a, b T) bool) {
	if seen := &t[hash%uint64(len(t))]; same(*seen, *value) {
		*value = *seen
	} else {
		*seen = *value
	}
}

// sharePointer replaces a pointer by the last one to an equal value.
func sharePointer[T comparable](last, p **T) {
	switch {
	case *p == nil:
	case *last != nil && **last == **p:
		*p = *last
	default:
		*last = *p
	}
}
