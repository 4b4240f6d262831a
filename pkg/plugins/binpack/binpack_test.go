// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binpack_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/internal/placing"
)

func TestScores(t *testing.T) { placing.Walk(t, "scores") }
