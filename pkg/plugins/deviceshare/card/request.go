// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package card

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// The names of HAMi's device plugin for Volcano (Volcano pkg/scheduler/api/devices/nvidia/vgpu).
const (
	vgpuNumber     corev1.ResourceName = "volcano.sh/vgpu-number"
	vgpuMemory     corev1.ResourceName = "volcano.sh/vgpu-memory"
	vgpuPercentage                     = resource.ShareOfCard
	vgpuCores      corev1.ResourceName = "volcano.sh/vgpu-cores"
)

// The two modes of cards, and the only policy of PodGroups there is.
const (
	hamiCore = "hami-core"
	mig      = "mig"
	spread   = "spread"
)

// NodeAnnotations are the annotations in which device plugins tell of the cards of a node.
func NodeAnnotations() []string { return []string{gpuUnhealthy, vgpuRegister} }

// LooksAtGroup reports whether it matters for a pod which PodGroup it belongs to.
func LooksAtGroup(pod *corev1.Pod) bool {
	return pod.Annotations[model.VGPUGroupPolicyAnnotation] == spread
}

// request is what a container asks for.
type request struct {
	// number is how many cards; 0 for a container that asks for none.
	number int
	// memory is in megabytes a card; 0: percent counts instead.
	memory int64
	// percent is of the memory of a card; 1 to 100.
	percent int64
	// cores are in percent of a card; 0 to 100.
	cores int64
}

// of is how many megabytes of a card are asked for.
func (r request) of(c *Card) int64 {
	if r.memory > 0 {
		return r.memory
	}
	return max(1, c.Memory*r.percent/100)
}

// thousandths are what a part is of a whole, at most all of it; rounded up. Of an unknown whole a part is all.
func thousandths(part, whole int64) int {
	if whole <= 0 || part >= whole {
		return fragment.Whole
	}
	return int((part*fragment.Whole + whole - 1) / whole)
}

// requestOf reads what a container asks for.
func requestOf(c *corev1.Container) (request, error) {
	r := request{
		number: int(limitOf(c, vgpuNumber)), memory: limitOf(c, vgpuMemory),
		percent: limitOf(c, vgpuPercentage), cores: limitOf(c, vgpuCores),
	}
	if r.number == 0 && r.memory > 0 {
		r.number = 1
	}
	if r.memory == 0 && r.percent == 0 {
		r.percent = 100
	}
	for _, name := range []corev1.ResourceName{vgpuPercentage, vgpuCores} {
		if percent := limitOf(c, name); r.number > 0 && percent > 100 {
			return r, fmt.Errorf("container %s has the limit %s: %d: it is in percent of a card, write at most 100", c.Name, name, percent)
		}
	}
	return r, nil
}

// wishes are what the annotations of a pod say about cards.
type wishes struct {
	types, noTypes, uuids, noUUIDs []string
}

func wishesOf(pod *corev1.Pod) wishes {
	return wishes{
		types: list(pod, model.GPUTypeAnnotation), noTypes: list(pod, model.NoGPUTypeAnnotation),
		uuids: list(pod, model.GPUUUIDAnnotation), noUUIDs: list(pod, model.NoGPUUUIDAnnotation),
	}
}

// TypesOf is what the annotations of a pod say about types of cards, as text: equal for pods that say the same, empty for those that take all.
func TypesOf(pod *corev1.Pod) string {
	w := wishesOf(pod)
	if len(w.types)+len(w.noTypes) == 0 {
		return ""
	}
	return strings.Join(w.types, ",") + "!" + strings.Join(w.noTypes, ",")
}

// TakesType reports whether pods of which TypesOf is such a text take cards of a type.
func TakesType(types, cardType string) bool {
	only, but, _ := strings.Cut(types, "!")
	w := wishes{types: split(only), noTypes: split(but)}
	return w.accepts(&Card{Type: cardType})
}

func list(pod *corev1.Pod, annotation string) []string { return split(pod.Annotations[annotation]) }

func split(text string) []string {
	var all []string
	for text := range strings.SplitSeq(text, ",") {
		if text = strings.TrimSpace(text); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// accepts reports whether a card is of a type, and is itself, as wished for.
func (w wishes) accepts(c *Card) bool {
	within := func(part string) bool { return strings.Contains(strings.ToUpper(c.Type), strings.ToUpper(part)) }
	return (len(w.types) == 0 || slices.ContainsFunc(w.types, within)) && !slices.ContainsFunc(w.noTypes, within) &&
		(len(w.uuids) == 0 || slices.Contains(w.uuids, c.ID)) && !slices.Contains(w.noUUIDs, c.ID)
}
