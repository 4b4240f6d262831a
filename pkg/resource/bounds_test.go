// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"math/big"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func asking(containers ...corev1.ResourceList) *corev1.Pod {
	pod := &corev1.Pod{}
	for _, requests := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests}})
	}
	return pod
}

func TestAmountsAreBoundedWhenTheyAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		got  resource.Vector
		want string
	}{
		"a pod that asks for more than any node has":        {resource.OfPod(asking(list("memory", "5Ei"))), "memory=128Ti pods=1"},
		"a pod whose containers together overflow":          {resource.OfPod(asking(list("memory", "5Ei"), list("memory", "5Ei"))), "memory=128Ti pods=1"},
		"a pod whose cores overflow as millicores":          {resource.OfPod(asking(list("cpu", "1E"))), "cpu=140737488355328m pods=1"},
		"a pod just below the bound":                        {resource.OfPod(asking(list("memory", "127Ti", "cpu", "140G"))), "cpu=140G memory=127Ti pods=1"},
		"an amount that is not whole is rounded up":         {resource.OfPod(asking(list("memory", "1500m", "cpu", "1500u"))), "cpu=2m memory=2 pods=1"},
		"a node or queue with more than any cluster has":    {resource.FromList(list("memory", "5Ei", "cpu", "1E")), "cpu=72057594037927936m memory=64Pi"},
		"a queue of a large cluster keeps what it is given": {resource.Schedulable(list("memory", "40Pi")), "memory=40Pi"},
		"amounts below zero are bounded too":                {resource.FromList(list("memory", "-5Ei", "cpu", "-1E")), "cpu=-72057594037927936m memory=-64Pi"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.got.String(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSumsOfRequestsDoNotOverflow(t *testing.T) {
	five := resource.OfPod(asking(list("memory", "5Ei")))
	for name, tc := range map[string]struct {
		pods int64
		// atLeast is how many times one pod's memory the sum reaches.
		atLeast int64
	}{
		"two pods":                     {pods: 2, atLeast: 2},
		"all pods of a cluster, exact": {pods: 32_000, atLeast: 32_000},
		"more than are exact":          {pods: 1 << 40, atLeast: 32_000},
	} {
		t.Run(name, func(t *testing.T) {
			var sum resource.Vector
			sum.AddTimes(five, tc.pods)
			sum.Add(five)
			sum.Sub(five)
			if got, want := sum.Get("memory"), tc.atLeast*five.Get("memory"); got < want {
				t.Errorf("%d pods ask for %d, want %d or more", tc.pods, got, want)
			}
			if sum.Exceeding(resource.FromList(list("memory", "1Ti"))) == nil {
				t.Error("they fit into 1Ti")
			}
		})
	}
}

// TestSumsAreRightOrAtTheirBound compares with whole numbers of any size.
func TestSumsAreRightOrAtTheirBound(t *testing.T) {
	bounded := func(n *big.Int) *big.Int {
		switch bound := big.NewInt(resource.MostOfSum); {
		case n.CmpAbs(bound) <= 0:
			return n
		case n.Sign() > 0:
			return bound
		default:
			return bound.Neg(bound)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		sum := rapid.Int64Range(-resource.MostOfSum, resource.MostOfSum).Draw(t, "sum")
		amount := rapid.Int64Range(-resource.MostOfSum, resource.MostOfSum).Draw(t, "amount")
		n := rapid.Int64().Draw(t, "n")
		want := bounded(new(big.Int).Mul(big.NewInt(amount), big.NewInt(n)))
		want = bounded(want.Add(want, big.NewInt(sum)))
		if got := resource.PlusTimes(sum, amount, n); got != want.Int64() {
			t.Errorf("%d + %d * %d = %d, want %s", sum, amount, n, got, want)
		}
	})
}

// BenchmarkAdd adds and subtracts what a pod asks for, as each event of a pod does.
func BenchmarkAdd(b *testing.B) {
	pod := resource.OfPod(asking(list("cpu", "1", "memory", "1Gi", "nvidia.com/gpu", "8")))
	sum := pod.Clone()
	b.ReportAllocs()
	for b.Loop() {
		sum.Add(pod)
		sum.Sub(pod)
	}
}
