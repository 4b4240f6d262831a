// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package networktopology_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	clienttesting "k8s.io/client-go/testing"
	topology "volcano.sh/apis/pkg/apis/topology/v1alpha1"
	volcanofake "volcano.sh/apis/pkg/client/clientset/versioned/fake"

	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	"github.com/caldera-scheduler/caldera/pkg/plugins/networktopology"
)

func hyperNode(name string, tier int, members ...topology.MemberSpec) *topology.HyperNode {
	return &topology.HyperNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: topology.HyperNodeSpec{Tier: tier, Members: members}}
}

func member(kind topology.MemberType, selector topology.MemberSelector) topology.MemberSpec {
	return topology.MemberSpec{Type: kind, Selector: selector}
}

func exactly(kind topology.MemberType, name string) topology.MemberSpec {
	return member(kind, topology.MemberSelector{ExactMatch: &topology.ExactMatch{Name: name}})
}

func matching(kind topology.MemberType, pattern string) topology.MemberSpec {
	return member(kind, topology.MemberSelector{RegexMatch: &topology.RegexMatch{Pattern: pattern}})
}

func labelled(kind topology.MemberType, selector metav1.LabelSelector) topology.MemberSpec {
	return member(kind, topology.MemberSelector{LabelMatch: &selector})
}

// follows is a follower of an API server with HyperNodes.
type follows struct {
	networktopology.Follower
	client   *volcanofake.Clientset
	trees    int
	problems []string
}

// follow begins to follow. It must be called in a bubble, and ended by the function it returns.
func follow(t *testing.T, served bool, objects ...runtime.Object) (*follows, func()) {
	t.Helper()
	f := &follows{client: volcanofake.NewSimpleClientset(objects...)}
	complain := func(o runtime.Object, problem string) {
		f.problems = append(f.problems, o.(*topology.HyperNode).Name+": "+problem)
	}
	f.Follower = networktopology.NewFollower(func() { f.trees++ }, complain)
	var lists []*metav1.APIResourceList
	if served {
		lists = append(lists, &metav1.APIResourceList{GroupVersion: topology.SchemeGroupVersion.String()})
	}
	ctx, stop := context.WithCancel(t.Context())
	finder := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: lists}}
	go f.Follow(ctx, informer.Clients{Discovery: finder, Volcano: f.client})
	time.Sleep(time.Second) // Informers look now and then whether they have read everything.
	synctest.Wait()
	return f, stop
}

// path leads from the lowest HyperNode of a node up.
func (f *follows) path(node string) string {
	var names []string
	for d := f.Tree().Leaf(node); d.Parent != nil; d = d.Parent {
		names = append(names, d.Name)
	}
	return strings.Join(names, " ")
}

func node(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func TestTheTreeFollowsHyperNodesAndNodes(t *testing.T) {
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false)
	synctest.Test(t, func(t *testing.T) {
		f, stop := follow(t, true,
			hyperNode("rack1", 1, exactly(topology.MemberTypeNode, "a")),
			hyperNode("rack2", 1, matching(topology.MemberTypeNode, "^b")),
			hyperNode("rack3", 1, labelled(topology.MemberTypeNode, metav1.LabelSelector{MatchLabels: map[string]string{"rack": "3"}})),
			hyperNode("zone", 2, exactly(topology.MemberTypeHyperNode, "rack1"), matching(topology.MemberTypeHyperNode, "^rack[23]$")))
		defer stop()
		hyperNodes := f.client.TopologyV1alpha1().HyperNodes()
		for _, step := range []struct {
			name   string
			change func() error
			want   map[string]string
			// new: a tree was built.
			new bool
		}{
			{"no nodes", func() error { return nil }, map[string]string{"a": ""}, false},
			{"nodes appear", func() error {
				f.PutNode(node("a", nil))
				f.PutNode(node("b1", nil))
				f.PutNode(node("c", map[string]string{"rack": "3"}))
				return nil
			}, map[string]string{"a": "rack1 zone", "b1": "rack2 zone", "c": "rack3 zone"}, true},
			{"a node as it was", func() error { f.PutNode(node("a", nil)); return nil }, map[string]string{"a": "rack1 zone"}, false},
			{"a label changes", func() error { f.PutNode(node("c", nil)); return nil }, map[string]string{"c": ""}, true},
			{"a node goes", func() error { f.RemoveNode(node("a", nil)); return nil }, map[string]string{"a": "", "b1": "rack2 zone"}, true},
			{"a status changes", func() error {
				o := hyperNode("rack1", 1, exactly(topology.MemberTypeNode, "a"))
				o.Status.NodeCount = 1
				_, err := hyperNodes.Update(t.Context(), o, metav1.UpdateOptions{})
				return err
			}, map[string]string{"b1": "rack2 zone"}, false},
			{"a HyperNode changes", func() error {
				_, err := hyperNodes.Update(t.Context(), hyperNode("rack1", 1, exactly(topology.MemberTypeNode, "c")), metav1.UpdateOptions{})
				return err
			}, map[string]string{"c": "rack1 zone"}, true},
			{"a HyperNode goes", func() error { return hyperNodes.Delete(t.Context(), "zone", metav1.DeleteOptions{}) }, map[string]string{"c": "rack1"}, true},
		} {
			before := f.trees
			if err := step.change(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			got := map[string]string{}
			for name := range step.want {
				got[name] = f.path(name)
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("%s: HyperNodes of nodes (-want,+got)\n%s", step.name, diff)
			}
			if built := f.trees > before; built != step.new {
				t.Errorf("%s: a tree was built: %v, want %v", step.name, built, step.new)
			}
		}
	})
}

func TestWhatIsWrongWithHyperNodesIsToldOnce(t *testing.T) {
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false)
	synctest.Test(t, func(t *testing.T) {
		f, stop := follow(t, true,
			hyperNode("a", 1, matching(topology.MemberTypeNode, "node-(")),
			hyperNode("b", 1, labelled(topology.MemberTypeHyperNode, metav1.LabelSelector{})),
			hyperNode("c", 1, member(topology.MemberTypeNode, topology.MemberSelector{}), exactly(topology.MemberTypeNode, "n")),
			hyperNode("d", 1, labelled(topology.MemberTypeNode, metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Like"}},
			})),
			hyperNode("e", 2, exactly(topology.MemberTypeHyperNode, "f")), hyperNode("f", 2, exactly(topology.MemberTypeHyperNode, "e")))
		defer stop()
		f.PutNode(node("n", nil))
		synctest.Wait()
		const until = "; the member does not count until then"
		want := []string{
			"a: spec.members[0].selector.regexMatch.pattern is \"node-(\": error parsing regexp: missing closing ): `node-(`: correct it" + until,
			"b: spec.members[0].selector.labelMatch selects nodes only, and its type is HyperNode: use exactMatch or regexMatch" + until,
			"c: spec.members[0].selector is empty: set exactMatch, regexMatch or labelMatch" + until,
			`d: spec.members[0].selector.labelMatch cannot be read: "Like" is not a valid label selector operator: correct it` + until,
			"e: its member f is of tier 2, and it is of tier 2 itself: give it a higher tier than its members" + until,
			"f: its member e is of tier 2, and it is of tier 2 itself: give it a higher tier than its members" + until,
		}
		if diff := cmp.Diff(want, f.problems); diff != "" {
			t.Errorf("problems (-want,+got)\n%s", diff)
		}
		if got := f.path("n"); got != "c" {
			t.Errorf("the node is in %q, want c: the rest of a HyperNode counts", got)
		}
	})
}

func TestNothingIsKnownUntilTheAPIServerHasSaidSo(t *testing.T) {
	if f := networktopology.NewFollower(func() {}, nil); f.Tree() != nil {
		t.Error("there is a tree before anything was read")
	}
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false)
	synctest.Test(t, func(t *testing.T) {
		f, stop := follow(t, false)
		defer stop()
		if f.Tree() == nil {
			t.Error("there is no tree though the API server does not serve HyperNodes")
		}
	})
}
