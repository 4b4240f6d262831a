// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package documents takes YAML files apart.
package documents

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// In yields the documents of a YAML file, those of comments alone, too. A line --- at its beginning is left there; YAML parsers skip it. An error
// is the last that it yields.
func In(data []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
		for {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) || !yield(document, err) || err != nil {
				return
			}
		}
	}
}
