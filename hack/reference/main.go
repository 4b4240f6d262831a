// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command reference writes those pages of docs/reference that say what the code says of itself: comments, names, defaults, and what is
// refused. Of the scheduler it links no more than what reads its configuration. What only the whole scheduler or command can tell, its
// metrics and flags, tests write that link these anyway: make reference runs both.
//
// Usage, at the root of the repository: go run ./hack/reference
package main

import (
	"fmt"
	"os"

	"github.com/caldera-scheduler/caldera/internal/testing/reference"
)

func main() {
	for _, page := range []func() (*reference.Page, error){pluginArguments, volcanoArguments, reasons, registered} {
		p, err := page()
		if err == nil {
			err = p.Write(".")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "reference:", err)
			os.Exit(1)
		}
	}
}
