// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/caldera-scheduler/caldera/pkg/simulate/live"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Where Caldera's schedulers elect their leader (manifests/config), and where a cluster's own kube-scheduler runs if it is a pod.
const (
	leaseNamespace = "caldera-system"
	leaseName      = "caldera-scheduler"
	kubeSystem     = metav1.NamespaceSystem
	// Caldera's own static pod has the first label, too (manifests/static-pod).
	kubeScheduler = "component=kube-scheduler,app.kubernetes.io/name!=caldera"
)

// definitions are those of Volcano that the scheduler cannot do without.
var definitions = []string{"podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh"}

// cluster holds the objects and settings that the check has read.
type cluster struct {
	server *version.Info
	// definitions are those of Volcano that are there, by name; nil if they could not be read.
	definitions map[string]*apiextensionsv1.CustomResourceDefinition
	parts       []part
	conf        conf
	objects     []scenario.Sourced
	// lease is that of Caldera's leader; nil for none.
	lease *coordinationv1.Lease
	// kubeSchedulers are the pods of the cluster's own kube-scheduler.
	kubeSchedulers []corev1.Pod
	// unread are the reads that the API server has refused to the user.
	unread []unread

	only bool
	now  time.Time
}

// unread is a read that the API server has refused, and its error.
type unread struct {
	what string
	err  error
}

// conf is a volcano-scheduler.conf and where it was found; without data there is none.
type conf struct {
	source string
	data   []byte
}

// program is one of Volcano's binaries.
type program string

// The programs of Volcano, by the names of their images and binaries.
const (
	scheduler   program = "vc-scheduler"
	controllers program = "vc-controller-manager"
	webhooks    program = "vc-webhook-manager"
)

var programs = []program{scheduler, controllers, webhooks}

// part is a Deployment or StatefulSet of Volcano.
type part struct {
	program
	// name is KIND NAMESPACE/NAME.
	name, namespace string
	replicas        int32
	image           string
	options         map[string]string
	pod             *corev1.PodSpec
	container       *corev1.Container
}

// reader reads a cluster.
type reader struct {
	config      *rest.Config
	kube        kubernetes.Interface
	definitions apiextensions.Interface
}

func newReader(config *rest.Config) (*reader, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	definitions, err := apiextensions.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	return &reader{config, kube, definitions}, nil
}

// read reads all. What the user may not read is noted; any other error ends it.
func (r *reader) read(ctx context.Context) (*cluster, error) {
	c := &cluster{}
	var err error
	if c.server, err = r.kube.Discovery().ServerVersion(); err != nil {
		return nil, fmt.Errorf("asking the API server for its version: %w", err)
	}
	for _, step := range []struct {
		what string
		read func(context.Context, *cluster) error
	}{
		{"definitions", r.readDefinitions},
		{"Deployments and StatefulSets", r.readParts},
		{"the scheduler's configuration", r.readConf},
		{"lease " + leaseNamespace + "/" + leaseName, r.readLease},
		{"pods of " + kubeSystem, r.readKubeSchedulers},
		{"what is to be scheduled", r.readObjects},
	} {
		switch err := step.read(ctx, c); {
		case apierrors.IsForbidden(err):
			c.unread = append(c.unread, unread{step.what, err})
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", step.what, err)
		}
	}
	return c, nil
}

func (r *reader) readDefinitions(ctx context.Context, c *cluster) error {
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, name := range definitions {
		d, err := r.definitions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		default:
			found[name] = d
		}
	}
	c.definitions = found
	return nil
}

func (r *reader) readParts(ctx context.Context, c *cluster) error {
	deployments, err := r.kube.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		c.addPart("Deployment", &d.ObjectMeta, d.Spec.Replicas, &d.Spec.Template.Spec)
	}
	// Several schedulers that share pods by a hash are a StatefulSet.
	var sets *appsv1.StatefulSetList
	if sets, err = r.kube.AppsV1().StatefulSets("").List(ctx, metav1.ListOptions{}); err != nil {
		return err
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		c.addPart("StatefulSet", &s.ObjectMeta, s.Spec.Replicas, &s.Spec.Template.Spec)
	}
	return nil
}

// addPart adds a workload if it is one of Volcano's.
func (c *cluster) addPart(kind string, m *metav1.ObjectMeta, replicas *int32, pod *corev1.PodSpec) {
	for i := range pod.Containers {
		container := &pod.Containers[i]
		is, ok := programOf(container)
		if !ok {
			continue
		}
		p := part{
			program: is, name: fmt.Sprintf("%s %s/%s", kind, m.Namespace, m.Name), namespace: m.Namespace, replicas: 1,
			image: container.Image, options: optionsOf(container), pod: pod, container: container,
		}
		if replicas != nil {
			p.replicas = *replicas
		}
		c.parts = append(c.parts, p)
	}
}

// programOf returns which of Volcano's binaries a container runs, if any. Its images have the names of the binaries.
func programOf(c *corev1.Container) (program, bool) {
	image, _, _ := strings.Cut(path.Base(c.Image), ":")
	for _, p := range programs {
		if strings.HasPrefix(image, string(p)) || len(c.Command) > 0 && path.Base(c.Command[0]) == string(p) {
			return p, true
		}
	}
	return "", false
}

// optionsOf are the options of a container's program, without dashes. One without a value is "true"; of one that is given several times all values are
// there, with commas between them.
func optionsOf(c *corev1.Container) map[string]string {
	options := map[string]string{}
	words := strings.Fields(strings.Join(append(slices.Clone(c.Command), c.Args...), " "))
	for i, word := range words {
		if !strings.HasPrefix(word, "-") {
			continue
		}
		name, value, assigned := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case assigned:
		case i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"):
			value = words[i+1]
		default:
			value = "true"
		}
		if before, ok := options[name]; ok {
			value = before + "," + value
		}
		options[name] = value
	}
	return options
}

// readConf reads what the scheduler's Deployment mounts as its configuration.
func (r *reader) readConf(ctx context.Context, c *cluster) error {
	for _, p := range c.parts {
		file := p.options["scheduler-conf"]
		if p.program != scheduler || file == "" {
			continue
		}
		name, key := p.mounted(file)
		if name == "" {
			continue
		}
		m, err := r.kube.CoreV1().ConfigMaps(p.namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if data, ok := m.Data[key]; ok {
			c.conf = conf{fmt.Sprintf("ConfigMap %s/%s, %s", p.namespace, name, key), []byte(data)}
			return nil
		}
	}
	return nil
}

// mounted returns the ConfigMap, and the key in it, from which a file of the container is mounted; empty for none.
func (p *part) mounted(file string) (name, key string) {
	for _, m := range p.container.VolumeMounts {
		if path.Clean(m.MountPath) != path.Dir(file) && path.Clean(m.MountPath) != file {
			continue
		}
		for _, v := range p.pod.Volumes {
			if v.Name != m.Name || v.ConfigMap == nil {
				continue
			}
			key = path.Base(file)
			for _, item := range v.ConfigMap.Items {
				if item.Path == key {
					key = item.Key
				}
			}
			return v.ConfigMap.Name, key
		}
	}
	return "", ""
}

func (r *reader) readLease(ctx context.Context, c *cluster) error {
	lease, err := r.kube.CoordinationV1().Leases(leaseNamespace).Get(ctx, leaseName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	c.lease = lease
	return nil
}

func (r *reader) readKubeSchedulers(ctx context.Context, c *cluster) error {
	pods, err := r.kube.CoreV1().Pods(kubeSystem).List(ctx, metav1.ListOptions{LabelSelector: kubeScheduler})
	if err != nil {
		return err
	}
	c.kubeSchedulers = pods.Items
	return nil
}

func (r *reader) readObjects(ctx context.Context, c *cluster) error {
	objects, err := live.Read(ctx, r.config)
	if err == nil {
		// Half of a cluster would say nothing of the whole.
		c.objects = objects
	}
	return err
}
