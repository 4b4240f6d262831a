// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart_test has Helm's own library render the chart in manifests/chart, and install it on a real control plane.
package chart_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	chartDir  = "../../manifests/chart"
	release   = "caldera"
	namespace = "caldera-system"
	oldest    = "v1.34.0"
)

// Each time that the chart is read Helm tells of its links.
func init() { slog.SetLogLoggerLevel(slog.LevelWarn) }

// load reads the chart from its folder, as helm does.
func load(t *testing.T) *chartv2.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// values reads values as helm does from a file.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	v := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// cluster is what helm template is told of the cluster.
type cluster struct {
	// version is that of Kubernetes; empty: the oldest that is supported.
	version string
	// apis are those that are served besides Kubernetes' own.
	apis []string
	// namespace is the release's; empty: that of the files in manifests.
	namespace string
}

// template does what helm template does.
func template(c *chartv2.Chart, with map[string]any, of cluster) (*releasev1.Release, error) {
	install := action.NewInstall(action.NewConfiguration())
	install.ReleaseName, install.Namespace, install.DryRunStrategy = release, namespace, action.DryRunClient
	install.APIVersions = of.apis
	if of.namespace != "" {
		install.Namespace = of.namespace
	}
	version, err := common.ParseKubeVersion(cmp.Or(of.version, oldest))
	if err != nil {
		return nil, err
	}
	install.KubeVersion = version
	rendered, err := install.Run(c, with)
	if err != nil {
		return nil, err
	}
	return rendered.(*releasev1.Release), nil
}

// objects are those of a release by what they are called, hooks too.
func objects(t *testing.T, of *releasev1.Release) map[string]*unstructured.Unstructured {
	t.Helper()
	text := of.Manifest
	for _, hook := range of.Hooks {
		text += "\n---\n" + hook.Manifest
	}
	all, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// decode reads objects from YAML. It refuses two of one name.
func decode(text string) (map[string]*unstructured.Unstructured, error) {
	all := map[string]*unstructured.Unstructured{}
	decoder := utilyaml.NewYAMLToJSONDecoder(strings.NewReader(text))
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(u.Object) == 0:
			continue
		}
		if all[id(u)] != nil {
			return nil, fmt.Errorf("%s is there twice", id(u))
		}
		all[id(u)] = u
	}
}

func id(u *unstructured.Unstructured) string {
	return strings.TrimSpace(u.GetKind() + " " + filepath.Join(u.GetNamespace(), u.GetName()))
}

// render is what helm template writes, as objects.
func render(t *testing.T, with string, of cluster) map[string]*unstructured.Unstructured {
	t.Helper()
	rendered, err := template(load(t), values(t, with), of)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, rendered)
}
