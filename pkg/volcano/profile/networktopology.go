// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// networkTopologyFactor is by how much the weight in the profile exceeds Volcano's, whose scores are 0 to 200 times that.
const networkTopologyFactor = 2

func (t *translator) networkTopology() {
	if t.plugins[config.PluginNetworkTopologyAware] == nil {
		return
	}
	decoded := decoded(t, config.PluginNetworkTopologyAware, arguments.DecodeNetworkTopology)
	t.add(names.NetworkTopology, &decoded.Args, networkTopologyFactor*max(1, decoded.Weight))
	if !t.scores(config.PluginNetworkTopologyAware) || decoded.Weight == 0 {
		disable(&t.profile.Plugins.PreScore, names.NetworkTopology)
		disable(&t.profile.Plugins.Score, names.NetworkTopology)
	}
}
