// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caldera-scheduler/caldera/internal/testing/simulated"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

// crowd is so many jobs of two pods in ten queues, too large for the only node.
func crowd(jobs int) string {
	var b strings.Builder
	b.WriteString("{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '1', memory: 32Gi, pods: '110'}}}\n")
	for q := range 10 {
		fmt.Fprintf(&b, "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q%d}, spec: {weight: 1}}\n", q)
	}
	for i := range jobs {
		fmt.Fprintf(&b, "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: j%d, namespace: ml}, spec: {minMember: 2, queue: q%d}}\n", i, i%10)
		for p := range 2 {
			fmt.Fprintf(&b, "---\n{apiVersion: v1, kind: Pod, metadata: {name: j%d-%d, namespace: ml, annotations: {scheduling.k8s.io/group-name: j%d}}, "+
				"spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {requests: {cpu: '2'}}}]}}\n", i, p, i)
		}
	}
	return b.String()
}

// BenchmarkViews is what one making of views costs while 5,000 jobs wait.
func BenchmarkViews(b *testing.B) {
	box := simulated.Settled(b, crowd(5000))
	for name, read := range map[string]func(*visibility.Views){
		"jobs": func(v *visibility.Views) { v.Jobs() }, "queues": func(v *visibility.Views) { v.Queues() }, "cluster": func(v *visibility.Views) { v.Cluster() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				read(viewsOf(box))
			}
		})
	}
}
