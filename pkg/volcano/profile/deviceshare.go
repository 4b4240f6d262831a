// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// deviceShare adds the plugin DeviceShare if a mode is turned on. It scores only with a policy and a weight, as in Volcano.
func (t *translator) deviceShare() {
	entry := t.plugins[config.PluginDeviceShare]
	if entry == nil {
		return
	}
	d := decoded(t, config.PluginDeviceShare, arguments.DecodeDeviceShare)
	if d.Args.Mode == "" {
		return
	}
	if !entry.Enabled(config.EnablePredicate) {
		t.errs = append(t.errs, field.Forbidden(t.paths[entry.Name].Child(string(config.EnablePredicate)),
			"pods would be bound to nodes without a card for them; remove it, or remove deviceshare"))
	}
	t.add(names.DeviceShare, &d.Args, max(1, d.Weight))
	if fit := argsOf[*schedulerconfig.NodeResourcesFitArgs](t.profile, upstream.NodeResourcesFit); fit != nil && d.Args.Mode == config.DeviceVGPU {
		fit.IgnoredResources = append(fit.IgnoredResources, string(resource.ShareOfCard))
	}
	if d.Weight == 0 || d.Args.SchedulePolicy == "" || !entry.Enabled(config.EnableNodeOrder) {
		disable(&t.profile.Plugins.Score, names.DeviceShare)
	}
}
