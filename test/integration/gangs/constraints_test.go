// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

func selectGang(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{env.GroupLabel: name}}
}

// perNode counts the members of a gang on each value of a node label.
func perNode(t *testing.T, e *env.Env, gang, label string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, p := range e.Members(t, gang) {
		node, err := e.Kube.CoreV1().Nodes().Get(t.Context(), p.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		counts[node.Labels[label]]++
	}
	return counts
}

// TestConstraintsAmongMembersHoldForTheWholeGang runs each constraint twice: with a gang that can satisfy it and with
// one member too many, which must then wait as a whole.
func TestConstraintsAmongMembersHoldForTheWholeGang(t *testing.T) { //nolint:tparallel // what is tried on one cluster comes one after the other
	t.Parallel()
	e := env.New(t, localcluster.Options{Shapes: []string{
		"name=a,count=2,cpu=16,memory=64Gi,label:zone=a",
		"name=b,count=2,cpu=16,memory=64Gi,label:zone=b",
		"name=c,count=2,cpu=16,memory=64Gi,label:zone=c",
	}})
	e.StartSchedulerWith(t, everyoneIsAdmitted)

	apart := func(gang string) func(int, *corev1.Pod) {
		return func(_ int, p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelHostname, LabelSelector: selectGang(gang),
				}},
			}}
		}
	}
	together := func(gang string) func(int, *corev1.Pod) {
		return func(_ int, p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: "zone", LabelSelector: selectGang(gang),
				}},
			}}
		}
	}
	spread := func(key string) func(string) func(int, *corev1.Pod) {
		return func(gang string) func(int, *corev1.Pod) {
			return func(_ int, p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
					MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selectGang(gang),
				}}
			}
		}
	}
	port := func(string) func(int, *corev1.Pod) {
		return func(_ int, p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
		}
	}
	for _, tc := range []struct {
		name       string
		constraint func(string) func(int, *corev1.Pod)
		cpu        string
		fits       int
		tooMany    int
		label      string
		most       int
	}{
		{"required anti-affinity puts each member on a node of its own", apart, "1", 6, 7, corev1.LabelHostname, 1},
		{"required affinity puts all members into one zone", together, "8", 4, 5, "zone", 4},
		{"topology spread puts equal numbers into the zones", spread("zone"), "8", 12, 13, "zone", 4},
		{"topology spread over nodes fills all of them before any gets another", spread(corev1.LabelHostname), "4", 9, 25, corev1.LabelHostname, 2},
		{"a host port is used once a node", port, "1", 6, 7, corev1.LabelHostname, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			gang := func(name string, size int) env.Gang {
				return env.Gang{Name: name, Min: size, Size: size, CPU: tc.cpu, Pod: tc.constraint(name)}
			}
			e.Create(t, gang("toomany", tc.tooMany))
			env.Eventually(t, 30*time.Second, e.Waits(t, "toomany", model.NotEnoughResources))
			e.Create(t, gang("fits", tc.fits))
			env.Eventually(t, 30*time.Second, e.AllBound(t, "fits", tc.fits))
			for where, n := range perNode(t, e, "fits", tc.label) {
				if n > tc.most {
					t.Errorf("%d members on %s %s, want at most %d", n, tc.label, where, tc.most)
				}
			}
			env.Consistently(t, time.Second, e.AllBound(t, "toomany", 0))
			e.Delete(t, "fits")
			e.Delete(t, "toomany")
			env.Eventually(t, 30*time.Second, func() string {
				if left := len(e.Members(t, "fits")) + len(e.Members(t, "toomany")); left > 0 {
					return fmt.Sprintf("%d deleted pods are still there", left)
				}
				return ""
			})
		})
	}
}

// TestVolumesThatBindOnFirstUse starts a gang whose volumes exist, and refuses as a whole one that is a volume short.
func TestVolumesThatBindOnFirstUse(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 4, Shapes: []string{"cpu=16,memory=64Gi"}})
	e.StartSchedulerWith(t, everyoneIsAdmitted)
	_, err := e.Kube.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: "kubernetes.io/no-provisioner",
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		createVolume(t, e, i, i%4)
	}
	withClaim := func(gang string) func(int, *corev1.Pod) {
		return func(i int, p *corev1.Pod) {
			claim := fmt.Sprintf("%s-%d", gang, i)
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}}
			createClaim(t, e, claim)
		}
	}
	e.Create(t, env.Gang{Name: "six", Min: 6, Size: 6, CPU: "1", Pod: withClaim("six")})
	env.Eventually(t, 30*time.Second, e.Waits(t, "six", model.NotEnoughResources))
	e.Create(t, env.Gang{Name: "three", Min: 3, Size: 3, CPU: "1", Pod: withClaim("three")})
	env.Eventually(t, 30*time.Second, e.AllBound(t, "three", 3))
	// Two volumes are left; the gang of six must not have taken any of them.
	e.Create(t, env.Gang{Name: "two", Min: 2, Size: 2, CPU: "1", Pod: withClaim("two")})
	env.Eventually(t, 30*time.Second, e.AllBound(t, "two", 2))
	env.Consistently(t, time.Second, e.AllBound(t, "six", 0))
	for i := 5; i < 11; i++ {
		createVolume(t, e, i, i%4)
	}
	env.Eventually(t, 30*time.Second, e.AllBound(t, "six", 6))
}

func createVolume(t *testing.T, e *env.Env, i, node int) {
	t.Helper()
	_, err := e.Kube.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("volume-%d", i)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              "local",
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{nodeName(t, e, node)},
				}},
			}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func nodeName(t *testing.T, e *env.Env, i int) string {
	t.Helper()
	nodes, err := e.Kube.CoreV1().Nodes().List(t.Context(), listAll)
	if err != nil {
		t.Fatal(err)
	}
	return nodes.Items[i].Name
}

func createClaim(t *testing.T, e *env.Env, name string) {
	t.Helper()
	_, err := e.Kube.CoreV1().PersistentVolumeClaims(env.Namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: new("local"),
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// everyoneIsAdmitted are the default tiers without the action enqueue: what does not fit is left to the nodes to say.
const everyoneIsAdmitted = `actions: "allocate, backfill"`
