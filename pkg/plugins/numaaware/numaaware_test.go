// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package numaaware_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/internal/testing/placing"
)

func TestNodes(t *testing.T) { placing.Walk(t, "nodes") }
