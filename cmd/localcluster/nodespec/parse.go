// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package nodespec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// ParseFlag reads one --node value: count=10,cpu=32,memory=256Gi,nvidia.com/gpu=8,label:zone=a,taint:k=v:NoSchedule.
func ParseFlag(value string) (Shape, error) {
	shape := Shape{}
	for field := range strings.SplitSeq(value, ",") {
		field = strings.TrimSpace(field)
		if err := shape.parseField(field); err != nil {
			return Shape{}, fmt.Errorf("--node %q: %w", value, err)
		}
	}
	if err := shape.complete(); err != nil {
		return Shape{}, fmt.Errorf("--node %q: %w", value, err)
	}
	return shape, nil
}

func (s *Shape) parseField(field string) error {
	if rest, ok := strings.CutPrefix(field, "taint:"); ok {
		return s.parseTaint(rest)
	}
	label, isLabel := strings.CutPrefix(field, "label:")
	key, value, ok := strings.Cut(label, "=")
	if !ok || key == "" {
		return fmt.Errorf("field %q: want key=value; separate fields with commas", field)
	}
	switch {
	case isLabel:
		return s.setLabel(key, value)
	case key == "name":
		return s.setPrefix(value)
	case key == "count":
		count, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("count %q: must be a whole number", value)
		}
		return s.setCount(count)
	default:
		return s.setResource(key, value)
	}
}

// parseTaint reads key=value:Effect or key:Effect, as kubectl taint does.
func (s *Shape) parseTaint(text string) error {
	at := strings.LastIndex(text, ":")
	if at < 0 {
		return fmt.Errorf("taint %q: want key=value:Effect, for example taint:dedicated=gpu:NoSchedule", text)
	}
	key, value, _ := strings.Cut(text[:at], "=")
	return s.addTaint(corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(text[at+1:])})
}

// fileShape is one entry of a --nodes-file.
type fileShape struct {
	Name      string            `json:"name,omitempty"`
	Count     *int              `json:"count,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Taints    []corev1.Taint    `json:"taints,omitempty"`
	Resources map[string]any    `json:"resources"`
}

// ParseFile reads the content of a --nodes-file: a YAML list of shapes. name appears in errors only.
func ParseFile(name string, content []byte) ([]Shape, error) {
	var entries []fileShape
	if err := yaml.UnmarshalStrict(content, &entries); err != nil {
		return nil, fmt.Errorf("--nodes-file %s: want a YAML list of {name, count, labels, taints, resources}: %w", name, err)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("--nodes-file %s: empty; add entries such as {count: 2, resources: {cpu: 8, memory: 32Gi}}", name)
	}
	shapes := make([]Shape, 0, len(entries))
	for i, entry := range entries {
		shape, err := entry.shape()
		if err != nil {
			return nil, fmt.Errorf("--nodes-file %s: entry %d: %w", name, i, err)
		}
		shapes = append(shapes, shape)
	}
	return shapes, nil
}

func (f fileShape) shape() (Shape, error) {
	shape := Shape{}
	if f.Name != "" {
		if err := shape.setPrefix(f.Name); err != nil {
			return Shape{}, err
		}
	}
	if f.Count != nil {
		if err := shape.setCount(*f.Count); err != nil {
			return Shape{}, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.Labels)) {
		if err := shape.setLabel(key, f.Labels[key]); err != nil {
			return Shape{}, err
		}
	}
	for _, taint := range f.Taints {
		if err := shape.addTaint(taint); err != nil {
			return Shape{}, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Resources)) {
		amount, err := amountText(f.Resources[name])
		if err != nil {
			return Shape{}, fmt.Errorf("resources.%s: %w", name, err)
		}
		if err := shape.setResource(name, amount); err != nil {
			return Shape{}, err
		}
	}
	if err := shape.complete(); err != nil {
		return Shape{}, err
	}
	return shape, nil
}

// amountText accepts cpu: 8, cpu: 0.5 and cpu: "8"; the YAML decoder gives numbers as float64.
func amountText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	default:
		return "", fmt.Errorf("value %v: must be a number or a quantity such as 256Gi", v)
	}
}
