// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

var listAll = metav1.ListOptions{}

// TestTwoGangsOfMoreThanHalfTheClusterTakeTurns creates two gangs of 60 % of the cluster each with their pods mixed:
// one runs, the other waits untouched and starts when the first is gone. Schedulers that reserve pod by pod dead-lock.
func TestTwoGangsOfMoreThanHalfTheClusterTakeTurns(t *testing.T) {
	t.Parallel()
	const rounds, nodes, cores, size = 100, 10, 2, 12
	e := env.New(t, localcluster.Options{Nodes: nodes, Shapes: []string{fmt.Sprintf("cpu=%d,memory=64Gi", cores)}})
	e.StartScheduler(t)
	for round := range rounds {
		a := env.Gang{Name: fmt.Sprintf("a-%d", round), Min: size, Size: size, CPU: "1"}
		b := env.Gang{Name: fmt.Sprintf("b-%d", round), Min: size, Size: size, CPU: "1"}
		e.CreateGroup(t, a)
		e.CreateGroup(t, b)
		var pods []*corev1.Pod
		for i := range size {
			pods = append(pods, a.Member(i), b.Member(i))
		}
		e.CreatePods(t, pods...)

		var first, second string
		env.Eventually(t, 30*time.Second, func() string {
			boundA, _ := e.Bound(t, a.Name)
			boundB, _ := e.Bound(t, b.Name)
			switch {
			case boundA == size && boundB == 0:
				first, second = a.Name, b.Name
			case boundB == size && boundA == 0:
				first, second = b.Name, a.Name
			default:
				return fmt.Sprintf("round %d: %d pods of a and %d of b have nodes, want %d of one and none of the other", round, boundA, boundB, size)
			}
			return ""
		})
		e.Delete(t, first)
		env.Eventually(t, 30*time.Second, e.AllBound(t, second, size))
		e.Delete(t, second)
		env.Eventually(t, 30*time.Second, func() string {
			if left := len(e.Members(t, first)) + len(e.Members(t, second)); left > 0 {
				return fmt.Sprintf("round %d: %d deleted pods are still there", round, left)
			}
			return ""
		})
	}
}
