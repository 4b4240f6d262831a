// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
)

const (
	namespace = metav1.NamespaceDefault
	lease     = "standby"
	// node is where all jobs run.
	node = "node-0"
	// patience is how long the standby may take to start, and to lead.
	patience = time.Minute
)

// stage is a cluster that somebody else leads, with a scheduler that waits.
type stage struct {
	options
	cluster   *localcluster.Cluster
	kube      kubernetes.Interface
	groups    volcanoclient.Interface
	scheduler *schedulerprocess.Process
	endpoints *http.Client
	base      string
}

// open starts the cluster and the standby. Whoever calls it closes the stage, also after an error.
func open(ctx context.Context, o options) (*stage, error) {
	s := &stage{options: o}
	var err error
	s.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Nodes: 1, Shapes: []string{"cpu=1000,memory=4000Gi,pods=10000"}, NoKubelets: true, NoControllers: true,
	})
	if err != nil {
		return s, err
	}
	config := s.cluster.RESTConfig()
	if s.groups, err = volcanoclient.NewForConfig(config); err != nil {
		return s, fmt.Errorf("building a client: %w", err)
	}
	config.ContentType = runtime.ContentTypeProtobuf
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return s, fmt.Errorf("building a client: %w", err)
	}
	if err := s.lead(ctx); err != nil {
		return s, err
	}
	err = s.start(ctx)
	return s, err
}

// lead takes the lease for a day.
func (s *stage) lead(ctx context.Context) error {
	now := metav1.NowMicro()
	_, err := s.kube.CoordinationV1().Leases(namespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: lease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("somebody-else"), LeaseDurationSeconds: new(int32(86400)), AcquireTime: &now, RenewTime: &now,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("taking the lease: %w", err)
	}
	return nil
}

// start runs the scheduler and returns when it serves.
func (s *stage) start(ctx context.Context) error {
	port, err := schedulerprocess.FreePort()
	if err != nil {
		return err
	}
	config, err := configuration()
	if err != nil {
		return err
	}
	s.scheduler, err = schedulerprocess.Start(schedulerprocess.Options{
		Binary: s.binary, Kubeconfig: s.cluster.Kubeconfig, Config: config, LeaderElection: true, Port: port, Dir: s.logs,
	})
	if err != nil {
		return err
	}
	if s.endpoints, s.base, err = schedulerprocess.Endpoints(port, s.cluster.RESTConfig()); err != nil {
		return err
	}
	err = apiwait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := s.get(ctx, "/healthz")
		return err == nil, s.ended()
	})
	if err != nil {
		return fmt.Errorf("waiting for the endpoints of the scheduler (see %s): %w", s.scheduler.LogFile, err)
	}
	return nil
}

// configuration is the shipped one with a lease that the stage holds.
func configuration() ([]byte, error) {
	shipped, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil {
		return nil, err
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(shipped, &config); err != nil {
		return nil, fmt.Errorf("reading the shipped configuration: %w", err)
	}
	config["leaderElection"] = map[string]any{
		"leaderElect": true, "resourceLock": "leases", "resourceNamespace": namespace, "resourceName": lease,
	}
	return yaml.Marshal(config)
}

// get fetches what the scheduler serves.
func (s *stage) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := s.endpoints.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the scheduler: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // It was only read.
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking the scheduler for %s: %s", path, response.Status)
	}
	return io.ReadAll(response.Body)
}

// ended returns an error if the cluster or the scheduler has stopped by itself.
func (s *stage) ended() error {
	select {
	case <-s.cluster.Exited():
		return errors.New("the cluster has stopped by itself")
	case <-s.scheduler.Exited():
		return fmt.Errorf("the scheduler has stopped by itself; see %s", s.scheduler.LogFile)
	default:
		return nil
	}
}

// close ends everything.
func (s *stage) close() error {
	var errs []error
	if s.scheduler != nil {
		_, err := s.scheduler.Stop()
		errs = append(errs, err)
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	return errors.Join(errs...)
}

// takeOver gives the lease up and returns how long it took until the standby had placed a gang.
func (s *stage) takeOver(ctx context.Context) (time.Duration, error) {
	const gang, size = "probe", 8
	if err := s.createGroup(ctx, gang, size); err != nil {
		return 0, err
	}
	for i := range size {
		if err := s.createPod(ctx, fmt.Sprintf("%s-%d", gang, i), gang); err != nil {
			return 0, err
		}
	}
	begun := time.Now()
	if err := s.kube.CoordinationV1().Leases(namespace).Delete(ctx, lease, metav1.DeleteOptions{}); err != nil {
		return 0, fmt.Errorf("giving the lease up: %w", err)
	}
	err := apiwait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pods, err := s.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: jobLabel + "=" + gang})
		if err != nil {
			return false, err
		}
		bound := 0
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName != "" {
				bound++
			}
		}
		return bound == size, s.ended()
	})
	if err != nil {
		return 0, fmt.Errorf("waiting for the standby to place a gang (see %s): %w", s.scheduler.LogFile, err)
	}
	return time.Since(begun), nil
}

// worker is a batch pod of a core.
func worker() corev1.PodSpec {
	return corev1.PodSpec{
		SchedulerName:                 "volcano",
		TerminationGracePeriodSeconds: new(int64(0)),
		Containers: []corev1.Container{{
			Name: "work", Image: "registry.k8s.io/pause:3.10",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: oneCore}},
		}},
	}
}
