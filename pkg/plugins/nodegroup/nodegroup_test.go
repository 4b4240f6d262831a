// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package nodegroup_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/internal/placing"
)

func TestGroups(t *testing.T) { placing.Walk(t, "groups") }
