// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
)

// volcanoConf is the shipped volcano-scheduler.conf that both versions go by: its actions evict.
const volcanoConf = "volcano/production.conf"

// scheduler is a process of a version.
type scheduler struct {
	*schedulerprocess.Process
	version *version
	// before: it was started before the rights were replaced.
	before bool
}

// install creates what the manifests of a version have besides the scheduler itself.
func (s *stage) install(ctx context.Context, v *version) error {
	names, err := surroundings(v.manifests)
	if err != nil {
		return err
	}
	return s.cluster.Install(ctx, v.manifests, names...)
}

// replace has the definitions and rights of a version take the place of those that are there, as kubectl apply --server-side does.
func (s *stage) replace(ctx context.Context, v *version) error {
	definitions, err := fs.Glob(v.manifests, "crds/*.yaml")
	if err != nil {
		return err
	}
	rest, err := surroundings(v.manifests)
	if err != nil {
		return err
	}
	s.replaced = true
	return s.cluster.Apply(ctx, "upgrade", v.manifests, append(definitions, rest...)...)
}

// surroundings are the files of a version's manifests without the definitions and the Deployment, in the order in which they can be created.
func surroundings(manifests fs.FS) ([]string, error) {
	names := []string{"deploy/namespace.yaml"}
	for _, pattern := range []string{"rbac/*.yaml", "visibility/*.yaml"} {
		found, err := fs.Glob(manifests, pattern)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	return names, nil
}

// start runs a scheduler and returns when it is ready to lead, or leads.
func (s *stage) start(ctx context.Context, v *version) (*scheduler, error) {
	s.started++
	dir := filepath.Join(s.logs, fmt.Sprintf("scheduler-%d", s.started))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	port, err := schedulerprocess.FreePort()
	if err != nil {
		return nil, err
	}
	o, err := v.options(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.name, err)
	}
	o.Kubeconfig, o.Port, o.QPS, o.Burst = s.kubeconfig, port, s.Rate, 1
	o.Args = append(o.Args,
		"--leader-elect-lease-duration="+s.Lease.String(), "--leader-elect-renew-deadline="+(s.Lease*4/5).String(), "--leader-elect-retry-period=200ms",
		fmt.Sprintf("--v=%d", s.verbosity))
	process, err := schedulerprocess.Start(o)
	if err != nil {
		return nil, err
	}
	p := &scheduler{Process: process, version: v, before: !s.replaced}
	s.all = append(s.all, p)
	client, base, err := schedulerprocess.Endpoints(port, s.cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	err = s.await(ctx, v.name+" is ready to lead", func(ctx context.Context) bool {
		select {
		case <-p.Exited():
			err = errors.New(p.lastWords())
			return true
		default:
			return answers(ctx, client, base+"/readyz")
		}
	})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", v.name, err)
	}
	return p, nil
}

func answers(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	return errors.Join(response.Body.Close()) == nil && response.StatusCode == http.StatusOK
}

// options are how the manifests of a version have its scheduler run: with the arguments of the Deployment, and the file of the configuration that they name. It
// goes by a shipped volcano-scheduler.conf besides. All schedulers share this machine, so that they serve views on ports of their own.
func (v *version) options(dir string) (schedulerprocess.Options, error) {
	o := schedulerprocess.Options{Binary: v.binary, LeaderElection: true, Dir: dir}
	args, err := v.args()
	if err != nil {
		return o, err
	}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "--config":
			if o.Config, err = fs.ReadFile(v.manifests, "config/"+path.Base(value)); err != nil {
				return o, err
			}
		case "--visibility-port":
			port, err := schedulerprocess.FreePort()
			if err != nil {
				return o, err
			}
			o.Args = append(o.Args, name+"="+strconv.Itoa(port))
		case "--v":
		default:
			o.Args = append(o.Args, arg)
		}
	}
	if o.Config == nil {
		return o, errors.New("the arguments of its Deployment name no file for --config")
	}
	conf, err := fs.ReadFile(v.manifests, volcanoConf)
	if err != nil {
		return o, err
	}
	file := filepath.Join(dir, path.Base(volcanoConf))
	o.Args = append(o.Args, "--volcano-conf="+file)
	return o, os.WriteFile(file, conf, 0o600)
}

// args are the arguments of the shipped Deployment.
func (v *version) args() ([]string, error) {
	data, err := fs.ReadFile(v.manifests, "deploy/deployment.yaml")
	if err != nil {
		return nil, err
	}
	var d appsv1.Deployment
	if err := yaml.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("reading the Deployment: %w", err)
	}
	if len(d.Spec.Template.Spec.Containers) == 0 {
		return nil, errors.New("the Deployment has no container")
	}
	return d.Spec.Template.Spec.Containers[0].Args, nil
}

// lastWords are the end of a scheduler's log.
func (p *scheduler) lastWords() string {
	data, err := os.ReadFile(p.LogFile)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-2000):])
}

// forbidden are the lines of a scheduler's log that tell of rights that it lacks.
func (p *scheduler) forbidden() ([]string, error) {
	data, err := os.ReadFile(p.LogFile)
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		// Validation, too, calls a field forbidden.
		if strings.Contains(line, "forbidden: User") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines, nil
}
