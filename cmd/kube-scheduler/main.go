// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kube-scheduler is the upstream scheduler with Caldera's plugins: same flags, same configuration, same
// endpoints.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/app"
)

func main() {
	os.Exit(cli.Run(app.New(plugins.Extensions{})))
}
