// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package localcluster

import "os/exec"

func detach(*exec.Cmd) {}

func lockFile(string) (unlock func(), err error) { return func() {}, nil }
