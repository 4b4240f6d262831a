// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Most plugins read little of a node: what it has, what is requested of it, how many pods it holds, its taints, and whether it is cordoned. Nodes that are
// equal in these look alike to them. One verdict and one raw score hold for all such nodes. So a new class asks these plugins once for each look.
// Planner.FiltersByLook and ScoresByLook say which plugins they are. NodeAffinity goes by labels that terms of the pod name. Nodes look alike to a class with such terms
// if they are equal in these, too.

// mostDevices is how many devices, and other resources of a name of their own, a node may list to be compared with others.
const mostDevices = 6

// look is what these plugins read of a node.
type look struct {
	spec, pods                int
	cpu, memory, storage      int64
	nonZeroCPU, nonZeroMemory int64
	devices                   [mostDevices]int64
}

// spec is the part of a look that comes from the node's own object, and has its labels: its number, and the devices that it lists, in order.
type spec struct {
	number  int
	devices []corev1.ResourceName
}

// looks numbers the looks of nodes to classes that mention some labels. A node keeps its number until something about it changes.
type looks struct {
	// labels are these.
	labels []string
	// nodes are the numbers by position on the snapshot.
	nodes []numbered
	// numbers are those of the looks there have been, and specs what nodes' objects said, by that in words.
	numbers map[look]int
	specs   map[string]spec
	// text is room for these words, and names for those of devices.
	text  []byte
	names []corev1.ResourceName
}

// numbered is what is known of a node in one state: the number of its look, and whether it has images. Each state of a node has a generation of its own. Pods that a
// plan assumes on the snapshot do not change it. The overlay has copies of their nodes.
type numbered struct {
	generation int64
	number     int
	images     bool
}

// mostMentioned is for how many sets of labels, which classes mention, the looks of nodes are remembered: with 50,000 nodes 1.2 MB each.
const mostMentioned = 8

// looksTo returns the looks of nodes to the class of a pod. There are none if its terms are about names of nodes, which tell all of them apart.
func (p *Planner) looksTo(pod *corev1.Pod, nodes int) *looks {
	labels, names := mentioned(pod)
	if names {
		return nil
	}
	var text []byte
	for _, key := range labels {
		text = appendWord(text, key)
	}
	l := p.looks[string(text)]
	if l == nil {
		if len(p.looks) > mostMentioned || p.looks == nil {
			// Those to classes that mention no label stay.
			plain := p.looks[""]
			p.looks = map[string]*looks{}
			if plain != nil {
				p.looks[""] = plain
			}
		}
		l = &looks{labels: labels}
		p.looks[string(text)] = l
	}
	l.prepare(nodes)
	return l
}

// mentioned returns the labels of nodes that the node selector and the node affinity of a pod name, each once, and whether they are about names of nodes, too. Whatever
// their operators, they go by nothing else of a node.
func mentioned(pod *corev1.Pod) (labels []string, names bool) {
	mention := func(term *corev1.NodeSelectorTerm) {
		for i := range term.MatchExpressions {
			labels = append(labels, term.MatchExpressions[i].Key)
		}
		names = names || len(term.MatchFields) > 0
	}
	for key := range pod.Spec.NodeSelector {
		labels = append(labels, key)
	}
	if pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil {
		affinity := pod.Spec.Affinity.NodeAffinity
		if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			for i := range required.NodeSelectorTerms {
				mention(&required.NodeSelectorTerms[i])
			}
		}
		for i := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
			mention(&affinity.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels), names
}

// unlike is the number of a node that is not compared with others.
const unlike = -1

// prepare makes room for as many nodes, and forgets what has been. Nodes come and go, and their looks change: what nobody looks like any more is not kept for ever.
func (l *looks) prepare(nodes int) {
	const spare = 1024
	if l.numbers == nil || max(len(l.numbers), len(l.specs)) > 4*nodes+spare {
		*l = looks{labels: l.labels, numbers: map[look]int{}, specs: map[string]spec{}}
	}
	if len(l.nodes) < nodes {
		l.nodes = append(l.nodes, make([]numbered, nodes-len(l.nodes))...)
	}
}

// of returns the number of the look of the node at a position, the same for nodes that look alike, and unlike for one that is not compared; and whether it has images.
func (l *looks) of(position int, info fwk.NodeInfo) (number int, images bool) {
	n := &l.nodes[position]
	if generation := info.GetGeneration(); n.generation != generation || generation == 0 {
		*n = numbered{generation, l.number(info), len(info.GetImageStates()) > 0}
	}
	return n.number, n.images
}

func (l *looks) number(info fwk.NodeInfo) int {
	s := l.specOf(info)
	if len(s.devices) > mostDevices {
		return unlike
	}
	requested, nonZero := info.GetRequested(), info.GetNonZeroRequested()
	k := look{
		spec: s.number, pods: len(info.GetPods()),
		cpu: requested.GetMilliCPU(), memory: requested.GetMemory(), storage: requested.GetEphemeralStorage(),
		nonZeroCPU: nonZero.GetMilliCPU(), nonZeroMemory: nonZero.GetMemory(),
	}
	if len(s.devices) > 0 {
		taken := requested.GetScalarResources()
		for i, name := range s.devices {
			k.devices[i] = taken[name]
		}
	}
	n, known := l.numbers[k]
	if !known {
		n = len(l.numbers)
		l.numbers[k] = n
	}
	return n
}

// specOf reads what a node's object says.
func (l *looks) specOf(info fwk.NodeInfo) spec {
	n, has := info.Node(), info.GetAllocatable()
	l.names = l.names[:0]
	for name := range has.GetScalarResources() {
		l.names = append(l.names, name)
	}
	slices.Sort(l.names)
	text := strconv.AppendBool(l.text[:0], n.Spec.Unschedulable)
	for _, amount := range [...]int64{has.GetMilliCPU(), has.GetMemory(), has.GetEphemeralStorage(), int64(has.GetAllowedPodNumber())} {
		text = strconv.AppendInt(append(text, ' '), amount, 10)
	}
	for _, name := range l.names {
		text = appendWord(text, string(name))
		text = strconv.AppendInt(append(text, ' '), has.GetScalarResources()[name], 10)
	}
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		for _, part := range [...]string{t.Key, t.Value, string(t.Effect)} {
			text = appendWord(text, part)
		}
	}
	for _, key := range l.labels {
		if value, there := n.Labels[key]; there {
			text = appendWord(text, value)
		} else {
			text = append(text, '-')
		}
	}
	l.text = text
	s, known := l.specs[string(text)]
	if !known {
		s = spec{number: len(l.specs), devices: slices.Clone(l.names)}
		l.specs[string(text)] = s
	}
	return s
}

// appendWord appends a word so that it ends where it did, whatever is in it.
func appendWord(text []byte, word string) []byte {
	text = strconv.AppendInt(append(text, ' '), int64(len(word)), 10)
	return append(append(text, ' '), word...)
}

// imageNames are the names under which nodes may list a pod's images. A name without a tag means the tag latest.
func imageNames(pod *corev1.Pod) []string {
	var names []string
	add := func(image string) { names = append(names, image, image+":latest") }
	for _, list := range [...][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			add(list[i].Image)
		}
	}
	for i := range pod.Spec.Volumes {
		if image := pod.Spec.Volumes[i].Image; image != nil {
			add(image.Reference)
		}
	}
	return names
}

// imagesOn says which of some images a node has. ImageLocality scores their sizes, and how many nodes have them. Most often a node has none.
func imagesOn(info fwk.NodeInfo, names []string) string {
	states := info.GetImageStates()
	var text []byte
	for i, name := range names {
		if s, there := states[name]; there {
			text = fmt.Appendf(text, "%d %d %d;", i, s.Size, s.NumNodes)
		}
	}
	return string(text)
}

// askedOnce picks the nodes that are asked, maybe some at a time. Of those with one key it is only the first.
type askedOnce struct {
	first map[int]int
	asked int
}

// pick picks, of n further nodes, those that are asked: the first of each key, and all without one. It returns their positions, and for each node which of all that
// have been asked so far speaks for it.
func (q *askedOnce) pick(n int, key func(i int) (k int, compared bool)) (reps, of []int) {
	of = make([]int, n)
	if q.first == nil {
		q.first = map[int]int{}
	}
	for i := range n {
		k, compared := key(i)
		if compared {
			if rep, known := q.first[k]; known {
				of[i] = rep
				continue
			}
			q.first[k] = q.asked
		}
		of[i] = q.asked
		q.asked++
		reps = append(reps, i)
	}
	return reps, of
}

// asked picks those of n nodes that are asked, where these are all.
func asked(n int, key func(i int) (k int, compared bool)) (reps, of []int) {
	return new(askedOnce).pick(n, key)
}
