// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestGangsSurviveNodesAndPodsThatDisappear runs gangs to their end while nodes and pods are deleted under them, at any
// moment between plan and bind, and created again as their controllers would.
func TestGangsSurviveNodesAndPodsThatDisappear(t *testing.T) {
	t.Parallel()
	const gangs, size, nodes, blows = 30, 4, 10, 60
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := &chaos{random: rand.New(rand.NewPCG(seed, 0)), gangs: map[string]env.Gang{}}
	e := env.New(t, localcluster.Options{Nodes: nodes, Shapes: []string{"cpu=8,memory=64Gi"}})
	e.StartScheduler(t)
	for i := range gangs {
		g := env.Gang{Name: fmt.Sprintf("gang-%d", i), Min: size, Size: size, CPU: "1", Pod: func(_ int, p *corev1.Pod) {
			p.Annotations["localcluster.caldera.dev/run-for"] = "2s"
		}}
		c.gangs[g.Name] = g
		e.Create(t, g)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range blows {
		<-tick.C
		if c.random.IntN(3) == 0 {
			c.loseNode(t, e)
		} else {
			c.losePod(t, e)
		}
	}
	for name := range c.gangs {
		env.Eventually(t, 2*time.Minute, func() string {
			for _, p := range e.Members(t, name) {
				if p.Status.Phase != corev1.PodSucceeded {
					return fmt.Sprintf("pod %s is %s on node %q", p.Name, p.Status.Phase, p.Spec.NodeName)
				}
			}
			return phaseIs(t, e, name, volcano.PodGroupCompleted)()
		})
	}
}

type chaos struct {
	random *rand.Rand
	gangs  map[string]env.Gang
	// replaced numbers the pods created for deleted ones.
	replaced int
}

// loseNode deletes a node with everything on it, and brings it back.
func (c *chaos) loseNode(t *testing.T, e *env.Env) {
	t.Helper()
	nodes, err := e.Kube.CoreV1().Nodes().List(t.Context(), listAll)
	if err != nil {
		t.Fatal(err)
	}
	node := nodes.Items[c.random.IntN(len(nodes.Items))]
	if err := e.Kube.CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for name := range c.gangs {
		for _, p := range e.Members(t, name) {
			if p.Spec.NodeName == node.Name && p.Status.Phase != corev1.PodSucceeded {
				c.replace(t, e, p)
			}
		}
	}
	fresh := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, Annotations: node.Annotations}, Spec: node.Spec}
	created, err := e.Kube.CoreV1().Nodes().Create(t.Context(), fresh, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Status = node.Status
	if _, err := e.Kube.CoreV1().Nodes().UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
}

// losePod deletes a pod that has not finished, wherever it is.
func (c *chaos) losePod(t *testing.T, e *env.Env) {
	t.Helper()
	members := e.Members(t, fmt.Sprintf("gang-%d", c.random.IntN(len(c.gangs))))
	if len(members) == 0 {
		return
	}
	if p := members[c.random.IntN(len(members))]; p.Status.Phase != corev1.PodSucceeded {
		c.replace(t, e, p)
	}
}

// replace deletes a pod at once and creates another for it, under a name of its own as controllers do.
func (c *chaos) replace(t *testing.T, e *env.Env, p *corev1.Pod) {
	t.Helper()
	now := int64(0)
	err := e.Kube.CoreV1().Pods(p.Namespace).Delete(t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.UID}})
	switch {
	case apierrors.IsNotFound(err):
		// The lister is behind: the pod has been replaced already.
		return
	case err != nil:
		t.Fatal(err)
	}
	c.replaced++
	e.CreatePods(t, c.gangs[p.Labels[env.GroupLabel]].Member(100+c.replaced))
}
