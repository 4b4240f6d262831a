// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package nodegroup_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/internal/testing/placing"
)

func TestGroups(t *testing.T) { placing.Walk(t, "groups") }
