// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/caldera-scheduler/caldera/pkg/simulate"
)

// formats are the ways to write a result.
var formats = []struct {
	name  string
	write func(io.Writer, *simulate.Result) error
}{
	{"table", Table},
	{"json", JSON},
	{"conformance", func(out io.Writer, r *simulate.Result) error { return encode(out, ConformanceOf(r)) }},
}

// Formats are the names of the ways to write a result; the first is the default.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// Write writes a result in the format of a name.
func Write(out io.Writer, format string, r *simulate.Result) error {
	for _, f := range formats {
		if f.name == format {
			return f.write(out, r)
		}
	}
	return fmt.Errorf("output %q is not known: use one of %s", format, strings.Join(Formats(), ", "))
}

// JSON writes all of a result. Keys and the order of lists are stable.
func JSON(out io.Writer, r *simulate.Result) error { return encode(out, r) }

func encode(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
