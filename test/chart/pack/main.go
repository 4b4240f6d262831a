// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pack writes a package of the Helm chart, as helm package does, by the library that the tests use.
package main

import (
	"flag"
	"fmt"
	"os"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

func main() {
	dir := flag.String("chart", "../../manifests/chart", "The chart's folder.")
	destination := flag.String("destination", "../../_output", "Where the package goes.")
	version := flag.String("version", "", "The chart's version, as 1.2.3. Default: the one in Chart.yaml.")
	app := flag.String("app-version", "", "The version of the scheduler, which is the default tag of its image. Default: the one in Chart.yaml.")
	flag.Parse()
	file, err := pack(*dir, *destination, *version, *app)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(file)
}

// pack returns the name of the file that it writes.
func pack(dir, destination, version, app string) (string, error) {
	c, err := loader.LoadDir(dir)
	if err != nil {
		return "", fmt.Errorf("reading the chart in %s: %w", dir, err)
	}
	if version != "" {
		c.Metadata.Version = version
	}
	if app != "" {
		c.Metadata.AppVersion = app
	}
	if err := c.Validate(); err != nil {
		return "", fmt.Errorf("checking the chart in %s: %w", dir, err)
	}
	if err := os.MkdirAll(destination, 0o750); err != nil {
		return "", fmt.Errorf("making the folder for the package: %w", err)
	}
	file, err := chartutil.Save(c, destination)
	if err != nil {
		return "", fmt.Errorf("writing the package: %w", err)
	}
	return file, nil
}
