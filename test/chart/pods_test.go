// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
)

// schedulers are the processes of the Deployment's pods. The cluster's kubelets are simulated and run nothing: here each pod that they say is running has a
// real scheduler, with the pod's arguments, the files of its ConfigMaps, and the rights of its service account. It ends when the pod does.
type schedulers struct {
	r          *controlPlane
	t          *testing.T
	kubeconfig string

	mu      sync.Mutex // guards running; never held while a process is waited for
	running map[types.UID]*scheduler
}

// scheduler is the process of a pod.
type scheduler struct {
	*schedulerprocess.Process
	pod  string
	args []string
}

// follow runs the schedulers until the test ends.
func follow(t *testing.T, r *controlPlane) *schedulers {
	t.Helper()
	s := &schedulers{r: r, t: t, kubeconfig: r.kubeconfigOf(t, "caldera-scheduler"), running: map[types.UID]*scheduler{}}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if err := s.once(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("running the schedulers of pods: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
		for _, one := range s.all() {
			s.end(one)
		}
	})
	return s
}

// once starts and ends what has to be by the pods that there are.
func (s *schedulers) once(ctx context.Context) error {
	pods, err := s.r.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=scheduler"})
	if err != nil {
		return err
	}
	alive := map[types.UID]bool{}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		alive[p.UID] = true
		if s.of(p.UID) != nil {
			continue
		}
		one, err := s.start(ctx, p)
		if err != nil {
			return fmt.Errorf("pod %s: %w", p.Name, err)
		}
		s.mu.Lock()
		s.running[p.UID] = one
		s.mu.Unlock()
	}
	for uid, one := range s.all() {
		if !alive[uid] {
			s.end(one)
			s.mu.Lock()
			delete(s.running, uid)
			s.mu.Unlock()
		}
	}
	return nil
}

func (s *schedulers) of(uid types.UID) *scheduler {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[uid]
}

func (s *schedulers) all() map[types.UID]*scheduler {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.running)
}

// end ends a process as a kubelet does.
func (s *schedulers) end(one *scheduler) {
	if _, err := one.Stop(); err != nil {
		s.t.Errorf("the scheduler of pod %s: %v", one.pod, err)
	}
	if data, err := os.ReadFile(one.LogFile); err == nil && s.t.Failed() {
		s.t.Logf("pod %s, %q:\n%s", one.pod, one.args, data[max(0, len(data)-4096):])
	}
}

// start runs what the pod says. All processes share this machine, so that a port of its own takes the place of the pod's.
func (s *schedulers) start(ctx context.Context, p *corev1.Pod) (*scheduler, error) {
	dir := s.t.TempDir()
	mounted, err := s.mount(ctx, p, dir)
	if err != nil {
		return nil, err
	}
	port, err := schedulerprocess.FreePort()
	if err != nil {
		return nil, err
	}
	one := &scheduler{pod: p.Name, args: p.Spec.Containers[0].Args}
	o := schedulerprocess.Options{Binary: program(s.t, schedulerprocess.BinaryVariable), Kubeconfig: s.kubeconfig, LeaderElection: true, Dir: dir}
	for _, arg := range one.args {
		name, value, _ := strings.Cut(arg, "=")
		for path, folder := range mounted {
			if rest, ok := strings.CutPrefix(value, path+"/"); ok {
				value = filepath.Join(folder, rest)
			}
		}
		switch name {
		case "--config":
			// It is to say where the cluster is, which pods know otherwise.
			if o.Config, err = os.ReadFile(value); err != nil {
				return nil, err
			}
		case "--visibility-port":
			o.Args = append(o.Args, fmt.Sprintf("%s=%d", name, port))
		default:
			o.Args = append(o.Args, strings.TrimSuffix(name+"="+value, "="))
		}
	}
	if o.Config == nil {
		return nil, errors.New("its arguments name no file for --config")
	}
	one.Process, err = schedulerprocess.Start(o)
	return one, err
}

// mount writes the ConfigMaps of a pod below a folder, and says where each path is.
func (s *schedulers) mount(ctx context.Context, p *corev1.Pod, below string) (map[string]string, error) {
	mounted := map[string]string{}
	for _, m := range p.Spec.Containers[0].VolumeMounts {
		for _, volume := range p.Spec.Volumes {
			if volume.Name != m.Name || volume.ConfigMap == nil {
				continue
			}
			content, err := s.r.kube.CoreV1().ConfigMaps(p.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			mounted[m.MountPath] = filepath.Join(below, volume.Name)
			if err := os.Mkdir(mounted[m.MountPath], 0o700); err != nil {
				return nil, err
			}
			for name, text := range content.Data {
				if err := os.WriteFile(filepath.Join(mounted[m.MountPath], name), []byte(text), 0o600); err != nil {
					return nil, err
				}
			}
		}
	}
	return mounted, nil
}

// kubeconfigOf has the rights of a service account, and of nobody else.
func (r *controlPlane) kubeconfigOf(t *testing.T, account string) string {
	t.Helper()
	token, err := r.kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own := r.RESTConfig()
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: own.Host, CertificateAuthority: own.CAFile, CertificateAuthorityData: own.CAData}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: account}
	config.CurrentContext = "local"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}
