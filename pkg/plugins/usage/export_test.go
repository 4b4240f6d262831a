// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
)

// The formulas, for the examples of Volcano's own tests.
var (
	Estimate = estimate
	Risk     = risk
	Part     = part
)

// Build makes a plugin with a source and a clock, which has not asked for anything yet.
func Build(args *config.UsageArgs, from load.Source, c clock.WithTicker) *Usage {
	return build(args, from, c, model.NewState())
}

// Ask makes one round of asking; Follow makes many.
func (pl *Usage) Ask(ctx context.Context) error  { return pl.loads.Ask(ctx) }
func (pl *Usage) Follow(ctx context.Context)     { pl.follow(ctx) }
func (pl *Usage) State() *model.State            { return pl.state }
func (pl *Usage) Idle(info fwk.NodeInfo) float64 { return pl.idle(info) }
