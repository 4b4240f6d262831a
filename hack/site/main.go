// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command site makes a site of the documentation: the pages below docs, and those at the root of the repository. It is a folder of files. Any server can
// serve it, and it can be read without one.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("out", "_output/site", "the folder that is written; what it holds is removed first")
	source := flag.String("source", "https://github.com/caldera-scheduler/caldera/tree/main", "where links lead to what is no page")
	flag.Parse()
	s, err := read(os.DirFS("."), *source)
	if err == nil {
		err = s.write(*out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s; begin with index.html\n", len(s.pages), *out)
}
