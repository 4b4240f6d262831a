// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/harm"
)

const (
	namespace = metav1.NamespaceDefault
	// gangLabel names the gang a pod is of, othersLabel marks the pods that take room.
	gangLabel   = "chaos.caldera.dev/gang"
	othersLabel = "chaos.caldera.dev/others"
	// nodeCores is the size of a node.
	nodeCores = 4
	// poll is how often the state of the gangs is looked at.
	poll = 20 * time.Millisecond
)

// round is the result of one round.
type round struct {
	// After is how many binds or evictions there were before the trouble began, 0 if that did not depend on them.
	After int `json:"after"`
	// Blocked: others took all room before the trouble ended.
	Blocked bool `json:"blocked"`
	// Halves is how many gangs were half placed when the trouble began, and Released how many gave back what they held.
	Halves   int `json:"halves"`
	Released int `json:"released"`
	// Longest is for how long a gang was half placed since then, Held the core seconds that members of such gangs held.
	Longest time.Duration `json:"longest"`
	Held    float64       `json:"held"`
	// Others is how long it took until gangs that the trouble is no affair of were whole, 0 without such gangs.
	Others time.Duration `json:"others"`
	// Evicted is how many pods of others were evicted.
	Evicted int `json:"evicted"`
	// Failure is what should not have happened; empty if nothing did.
	Failure string `json:"failure,omitempty"`

	// number counts the rounds of a trouble from 0 on, and gangs are the names of its gangs.
	number int
	gangs  []string
	// mayRelease: the trouble may take longer than gangs may be half placed.
	mayRelease bool
}

// fail notes the first thing that should not have happened.
func (r *round) fail(format string, args ...any) {
	if r.Failure == "" {
		r.Failure = fmt.Sprintf(format, args...)
	}
}

// stage is a cluster with a scheduler, to which something happens.
type stage struct {
	options
	trouble trouble
	binary  string
	config  []byte

	placing localcluster.Options
	cluster *localcluster.Cluster
	kube    kubernetes.Interface
	groups  volcanoclient.Interface
	watcher *watcher
	// schedulers run, the leader first; started counts them.
	schedulers []*schedulerprocess.Process
	started    int
	// licences is the extender that one gang of a round needs.
	licences *harm.Extender
}

// open starts a cluster that has room for the gangs of a round, or as many times that as the trouble takes, and a scheduler.
func open(ctx context.Context, o options, t trouble, binary string) (s *stage, err error) {
	s = &stage{options: o, trouble: t, binary: binary}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.licences, err = harm.NewExtender(); err != nil {
		return s, err
	}
	if s.config, err = s.configuration(); err != nil {
		return s, err
	}
	s.placing = localcluster.Options{
		Nodes:  max(1, t.room) * ((o.Gangs*o.Size + nodeCores - 1) / nodeCores),
		Shapes: []string{fmt.Sprintf("cpu=%d,memory=64Gi,%s=%d", nodeCores, licence, nodeCores)},
	}
	if s.placing.Dir, err = memoryDir(); err != nil {
		return s, err
	}
	if s.cluster, err = localcluster.Start(ctx, s.placing); err != nil {
		return s, err
	}
	address, err := url.Parse(s.cluster.Server)
	if err != nil {
		return s, err
	}
	if s.placing.Port, err = strconv.Atoi(address.Port()); err != nil {
		return s, fmt.Errorf("reading the port of %s: %w", s.cluster.Server, err)
	}
	if s.kube, err = kubernetes.NewForConfig(s.cluster.RESTConfig()); err != nil {
		return s, err
	}
	if s.groups, err = volcanoclient.NewForConfig(s.cluster.RESTConfig()); err != nil {
		return s, err
	}
	if s.watcher, err = watch(ctx, s.kube); err != nil {
		return s, err
	}
	if t.open != nil {
		if err := t.open(ctx, s); err != nil {
			return s, err
		}
	}
	for range 1 + t.standbys {
		if err := s.start(ctx); err != nil {
			return s, err
		}
	}
	return s, nil
}

// memoryDir makes a directory for the data of a cluster, in memory if it can, that outlives a restart.
func memoryDir() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "chaos-"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "chaos-")
}

// close ends everything.
func (s *stage) close() error {
	var errs []error
	for _, p := range s.schedulers {
		_, err := p.Stop()
		errs = append(errs, err)
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	if s.licences != nil {
		errs = append(errs, s.licences.Close())
	}
	if s.placing.Dir != "" {
		errs = append(errs, os.RemoveAll(s.placing.Dir))
	}
	return errors.Join(errs...)
}

// configuration is the shipped one with another time for half gangs, and what the trouble takes.
func (s *stage) configuration() ([]byte, error) {
	shipped, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil {
		return nil, err
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(shipped, &config); err != nil {
		return nil, fmt.Errorf("reading the shipped configuration: %w", err)
	}
	args := map[string]any{"halfTimeout": s.HalfTimeout.String()}
	if s.trouble.configure != nil {
		s.trouble.configure(s, config, args)
	}
	profiles, _ := config["profiles"].([]any)
	for _, p := range profiles {
		if profile, ok := p.(map[string]any); ok {
			profile["pluginConfig"] = []any{map[string]any{"name": "BatchQueue", "args": args}}
		}
	}
	return yaml.Marshal(config)
}

// start runs a scheduler. One beside others does not lead before they are gone.
func (s *stage) start(ctx context.Context) error {
	s.started++
	number := s.started
	if !s.keep {
		number %= 2 + s.trouble.standbys
	}
	dir := filepath.Join(s.logs, fmt.Sprintf("%s-scheduler-%d", s.trouble.name, number))
	p, err := startScheduler(dir, schedulerprocess.Options{
		Binary: s.binary, Kubeconfig: s.cluster.Kubeconfig, Config: s.config, QPS: s.Rate, Burst: 1, LeaderElection: s.trouble.standbys > 0,
		Args: []string{fmt.Sprintf("-v=%d", s.verbosity)},
	})
	if err != nil {
		return err
	}
	s.schedulers = append(s.schedulers, p)
	if len(s.schedulers) > 1 || s.trouble.standbys == 0 {
		return nil
	}
	return s.led(ctx)
}

// crash kills the scheduler that leads.
func (s *stage) crash() error {
	leader := s.schedulers[0]
	s.schedulers = s.schedulers[1:]
	return leader.Kill()
}

// play does the rounds. Those done before an error are returned, too.
func (s *stage) play(ctx context.Context, progress io.Writer) (rounds []round, err error) {
	for i := range s.Rounds {
		r := round{number: i}
		for n := range s.Gangs {
			r.gangs = append(r.gangs, fmt.Sprintf("gang-%d-%d", i, n))
		}
		err := s.trouble.round(s, ctx, &r)
		if moved := s.watcher.moves(); moved != "" {
			r.fail("%s", moved)
		}
		if err == nil {
			err = s.clear(ctx, r.gangs)
		}
		if err != nil {
			return rounds, fmt.Errorf("%s, round %d: %w", s.trouble.name, i+1, err)
		}
		rounds = append(rounds, r)
		if r.Failure != "" {
			fmt.Fprintf(progress, "%s, round %d of %d, after %d: %s\n", s.trouble.name, i+1, s.Rounds, r.After, r.Failure)
		} else if (i+1)%10 == 0 {
			fmt.Fprintf(progress, "%s, round %d of %d\n", s.trouble.name, i+1, s.Rounds)
		}
	}
	return rounds, nil
}

// launch creates the gangs of a round and waits until so many of their pods are bound, or of others evicted, as the round says.
func (s *stage) launch(ctx context.Context, r *round, counts change) error {
	r.After = 1 + r.number%(s.Gangs*s.Size)
	reached := s.watcher.after(r.After, counts)
	for _, name := range r.gangs {
		if err := s.create(ctx, name); err != nil {
			return err
		}
	}
	select {
	case <-reached:
	case <-time.After(s.Patience):
		r.fail("%d did not happen within %s", r.After, s.Patience)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// follow waits until no gang is half placed that was, makes room if others took it, and waits until all gangs are whole.
func (s *stage) follow(ctx context.Context, r *round, before map[string]gang, at time.Time) error {
	h := newHalves(before, s.Size, at)
	within := time.Now().Add(s.HalfTimeout + s.Patience)
	if !s.await(ctx, r.gangs, h, within, func(now map[string]gang) bool { return h.count(now) == 0 }) {
		r.fail("%d gangs are half placed %s after the trouble began", h.count(s.watcher.gangs(r.gangs)), time.Since(at).Round(time.Second))
	}
	r.Released, r.Longest, r.Held = h.released, h.longest, h.held
	if h.released > 0 && !r.mayRelease {
		r.fail("%d gangs gave back what they held though there was room to complete them", h.released)
	}
	if r.Blocked {
		if err := s.remove(ctx, othersLabel); err != nil {
			return err
		}
	}
	if !s.await(ctx, r.gangs, h, time.Now().Add(s.Patience), func(now map[string]gang) bool { return s.whole(now, r.gangs) }) {
		r.fail("not all gangs are whole %s after the trouble began", time.Since(at).Round(time.Second))
	}
	return context.Cause(ctx)
}

// whole reports whether all of some gangs are.
func (s *stage) whole(now map[string]gang, names []string) bool {
	for _, name := range names {
		if len(now[name].bound) < s.Size {
			return false
		}
	}
	return true
}

// await looks at the gangs until something holds, and reports whether it does in time.
func (s *stage) await(ctx context.Context, names []string, h *halves, until time.Time, holds func(map[string]gang) bool) bool {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		now := s.watcher.gangs(names)
		h.see(now, time.Now())
		return holds(now), nil
	})
	return err == nil
}
