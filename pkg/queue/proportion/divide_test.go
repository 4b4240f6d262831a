// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package proportion_test

import (
	"fmt"
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/queue/proportion"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func cpu(n int64) resource.Vector { return resource.Vector{{Name: "cpu", Value: n}} }

func limit(n float64) resource.Limit {
	return resource.Limit{Amounts: resource.Portion{{Name: "cpu", Value: n}}, Unnamed: resource.Unlimited}
}

func TestWorked(t *testing.T) {
	got := proportion.Divide(cpu(100), []proportion.Demand{
		{Weight: 2, Request: cpu(80), Guarantee: cpu(10), Limit: limit(50)},
		{Weight: 3, Request: cpu(60), Limit: resource.Limit{Unnamed: resource.Unlimited}},
		{Weight: 5, Request: cpu(30), Guarantee: cpu(20), Limit: resource.Limit{Unnamed: resource.Unlimited}},
	})
	if fmt.Sprint(got) != "[[{cpu 28}] [{cpu 42}] [{cpu 30}]]" {
		t.Error(got)
	}
}
