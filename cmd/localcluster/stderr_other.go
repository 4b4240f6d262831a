// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "os"

// redirectStderr leaves standard error alone: what components write there directly reaches the terminal.
func redirectStderr(*os.File) (*os.File, error) { return os.Stderr, nil }
