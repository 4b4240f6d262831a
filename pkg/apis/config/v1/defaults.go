// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// SetDefaults_GangArgs fills what the user left out.
func SetDefaults_GangArgs(args *GangArgs) { //nolint:revive // The defaulter generator prescribes the name.
	if args.BindConcurrency == nil {
		// Measured: 64 binds in flight give more pods a second than thousands (docs/design/0001-gangs.md).
		args.BindConcurrency = ptr.To[int32](64)
	}
	if args.ReservationTimeout == nil {
		args.ReservationTimeout = &metav1.Duration{Duration: 5 * time.Minute}
	}
}
