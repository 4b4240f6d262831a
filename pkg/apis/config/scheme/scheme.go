// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheme registers the arguments of Caldera's plugins with kube-scheduler's own scheme. Importing it is enough.
package scheme

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	scheduler "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
)

func init() {
	utilruntime.Must(config.AddToScheme(scheduler.Scheme))
	utilruntime.Must(v1.AddToScheme(scheduler.Scheme))
}
