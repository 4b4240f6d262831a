// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package localcluster

import (
	"errors"
	"os/exec"
)

func detach(*exec.Cmd) {}

// Pause is not known here.
func (c *Cluster) Pause() error { return errors.ErrUnsupported }

// Resume is not known here.
func (c *Cluster) Resume() error { return errors.ErrUnsupported }

func lockFile(string) (unlock func(), err error) { return func() {}, nil }
