// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/internal/placing"
)

func TestFiltersAndScores(t *testing.T) { placing.Walk(t, "scores") }
