// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// usage adds the plugin Usage, with the source of metrics that stands beside the tiers in Volcano's file. There the plugin does
// nothing without one; nobody wants that.
func (t *translator) usage(metrics map[string]string) {
	entry := t.plugins[config.PluginUsage]
	if entry == nil {
		return
	}
	decoded := decoded(t, config.PluginUsage, arguments.DecodeUsage)
	filters, scores := entry.Enabled(config.EnablePredicate), entry.Enabled(config.EnableNodeOrder) && decoded.Weight > 0
	if !filters && !scores {
		return
	}
	section := field.NewPath("metrics")
	if len(metrics) == 0 {
		t.errs = append(t.errs, field.Required(section,
			fmt.Sprintf("usage at %s does nothing without it; add the section metrics with a type and an address, or remove usage", t.paths[config.PluginUsage])))
	}
	from, errs := arguments.DecodeMetrics(metrics, section)
	t.errs = append(t.errs, errs...)
	args := decoded.Args
	args.Metrics = from
	t.add(names.Usage, &args, max(1, decoded.Weight))
	if !filters {
		disable(&t.profile.Plugins.Filter, names.Usage)
	}
	if !scores {
		disable(&t.profile.Plugins.Score, names.Usage)
	}
}
