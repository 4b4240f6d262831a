// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command extending is an example of a scheduler with a plugin and policies of one's own: docs/extending.md.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/app"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
	"github.com/caldera-scheduler/caldera/test/integration/extending/deadline"
	"github.com/caldera-scheduler/caldera/test/integration/extending/fewestpods"
	"github.com/caldera-scheduler/caldera/test/integration/extending/grade"
)

// own is what this scheduler has besides Caldera's plugins.
var own = plugins.Extensions{
	Plugins:  runtime.Registry{fewestpods.Name: fewestpods.New},
	Policies: map[string]core.PolicyFactory{deadline.Name: deadline.New, grade.Name: grade.New},
}

func main() {
	os.Exit(cli.Run(app.New(own)))
}
