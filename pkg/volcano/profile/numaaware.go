// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// numaAware adds the plugin NUMAAware. Without a weight it filters only, as in Volcano.
func (t *translator) numaAware() {
	entry := t.plugins[config.PluginNumaAware]
	if entry == nil {
		return
	}
	weight := decoded(t, config.PluginNumaAware, arguments.DecodeNumaAware)
	t.add(names.NUMAAware, nil, max(1, weight))
	t.switches(entry, names.NUMAAware)
	if weight == 0 && entry.Enabled(config.EnableNodeOrder) {
		disable(&t.profile.Plugins.Score, names.NUMAAware)
	}
}
