// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/internal/testing/placing"
)

func TestFiltersAndScores(t *testing.T) { placing.Walk(t, "scores") }
