// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// extender gives the profile the questions about nodes; BatchQueue asks the others. Scores have no bounds in Volcano and
// count as they are, so that the greatest is as much as the weight makes of 100.
func (t *translator) extender() {
	if t.plugins[config.PluginExtender] == nil {
		return
	}
	if e := decoded(t, config.PluginExtender, arguments.DecodeExtender); e.Places() {
		t.add(names.Extender, &e.Args, max(1, int64(math.Round(float64(e.Args.MaxScore)/100))))
	}
}
