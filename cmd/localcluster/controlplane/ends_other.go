// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package controlplane

import "os/exec"

// endsWithThis does nothing: only Linux can.
func endsWithThis(*exec.Cmd) {}
