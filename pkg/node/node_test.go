// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/node"
)

func TestEarlier(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pod := func(name string, created, started int) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(begin.Add(time.Duration(created) * time.Second))}}
		if started > 0 {
			p.Status.StartTime = &metav1.Time{Time: begin.Add(time.Duration(started) * time.Second)}
		}
		return p
	}
	pods := []*corev1.Pod{pod("d", 5, 0), pod("c", 0, 0), pod("b", 9, 20), pod("a", 0, 30), pod("b2", 0, 0), pod("a2", 9, 20)}
	slices.SortFunc(pods, node.Earlier)
	var got []string
	for _, p := range pods {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff([]string{"a2", "b", "a", "b2", "c", "d"}, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}
