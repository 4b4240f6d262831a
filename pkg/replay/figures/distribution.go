// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Distribution is how values are spread. All are 0 where there are none.
type Distribution struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// distribution sorts values. A quantile is the least value that so many of them do not exceed.
func distribution(values []float64) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	slices.Sort(values)
	at := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, values, nil) }
	return Distribution{Mean: stat.Mean(values, nil), P50: at(0.5), P95: at(0.95), P99: at(0.99), Max: values[len(values)-1]}
}
