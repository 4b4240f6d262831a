// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

// key is the key of a ConfigMap under which decisions are: JSON, compressed.
const key = "decisions.json.gz"

const (
	// format is the number of the form in which decisions are written. A scheduler that cannot read it says so, and writes its own in their place.
	format = 1
	// most is how many bytes are written at most: an object may have 1 MiB in all.
	most = 900 << 10
	// longest is how many bytes are read at most.
	longest = 256 << 20
)

// file is what is written.
type file struct {
	Format    int                 `json:"format"`
	Decisions []eviction.Decision `json:"decisions"`
}

// encode writes decisions. If they are too long together, each is left with fewer and fewer of its pods.
func encode(decisions []eviction.Decision) ([]byte, error) {
	named := make([]eviction.Decision, len(decisions))
	for i := range decisions {
		named[i] = decisions[i].Named()
	}
	for {
		content, err := compress(file{format, named})
		if err != nil || len(content) <= most {
			return content, err
		}
		if !halve(named) {
			return nil, fmt.Errorf("%d decisions are too long to be written down: %d bytes", len(named), len(content))
		}
	}
}

// halve takes half of the pods out of those decisions that have most. It reports whether there were any.
func halve(decisions []eviction.Decision) bool {
	longest := 0
	for i := range decisions {
		longest = max(longest, len(decisions[i].Victims), len(decisions[i].Members))
	}
	for i := range decisions {
		d := &decisions[i]
		d.Victims = d.Victims[:min(len(d.Victims), longest/2)]
		d.Members = d.Members[:min(len(d.Members), longest/2)]
	}
	return longest > 0
}

func compress(f file) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if err := json.NewEncoder(w).Encode(f); err != nil {
		return nil, fmt.Errorf("writing decisions down: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("writing decisions down: %w", err)
	}
	return out.Bytes(), nil
}

func decode(content []byte) ([]eviction.Decision, error) {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("its %s is no ledger: %w", key, err)
	}
	var f file
	if err := json.NewDecoder(io.LimitReader(r, longest)).Decode(&f); err != nil {
		return nil, fmt.Errorf("its %s is no ledger: %w", key, err)
	}
	if f.Format != format {
		return nil, fmt.Errorf("its %s has the format %d, and this scheduler reads %d", key, f.Format, format)
	}
	return f.Decisions, nil
}
