// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceshare_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/internal/placing"
)

func TestNodes(t *testing.T) { placing.Walk(t, "nodes") }
