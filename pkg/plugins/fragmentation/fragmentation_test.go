// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/internal/testing/placing"
)

func TestScores(t *testing.T) { placing.Walk(t, "scores") }
