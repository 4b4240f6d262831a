// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestOfTwoReportsTheLaterCounts: reports are sent after the dispatcher's lock was released, and may overtake each other.
func TestOfTwoReportsTheLaterCounts(t *testing.T) {
	type report struct {
		seq    uint64
		reason model.Reason
	}
	none := model.Reason{}
	for name, tc := range map[string]struct {
		reports []report
		want    model.ReasonKind
	}{
		"in order":                        {[]report{{1, noPods}, {2, noRoom}}, noRoom.Kind},
		"the older one comes last":        {[]report{{2, noRoom}, {1, noPods}}, noRoom.Kind},
		"that the job waits no longer":    {[]report{{2, none}, {1, noRoom}}, ""},
		"that it waits again":             {[]report{{1, noRoom}, {3, noRoom}, {2, none}}, noRoom.Kind},
		"the same one twice":              {[]report{{1, noRoom}, {1, none}}, noRoom.Kind},
		"numbers that others used up too": {[]report{{5, noRoom}, {900, none}, {17, noPods}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			listFirst(t)
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t, podGroup(1), member("a"))
				for _, r := range tc.reports {
					d.Writer.Waits(train, r.reason, r.seq)
				}
				if got := d.Reasons()[train].Kind; got != tc.want {
					t.Errorf("it waits because of %q, want %q", got, tc.want)
				}
				d.Close()
			})
		})
	}
}

// TestAReportOfAJobThatIsGoneIsForgotten: neither the reason nor the number of the report is kept.
func TestAReportOfAJobThatIsGoneIsForgotten(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, podGroup(1))
		d.Writer.Waits(train, noRoom, 7)
		d.check(d.groups.SchedulingV1beta1().PodGroups("ns").Delete(t.Context(), "train", metav1.DeleteOptions{}))
		time.Sleep(2 * collected)
		if _, told := d.Reasons()[train]; told {
			t.Error("the reason of a job that is gone is remembered")
		}
		// A dispatcher that counts anew, in a test for instance.
		d.Writer.Waits(train, noRoom, 1)
		if _, told := d.Reasons()[train]; !told {
			t.Error("the number of a report about a job that is gone is remembered")
		}
	})
}

// TestAConflictIsNoEnd: only a PodGroup with another UID is another one. That somebody else wrote it at the same time is a
// conflict as well.
func TestAConflictIsNoEnd(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "podgroups"}, "train", errors.New("the object has been modified"))
	for name, tc := range map[string]struct {
		resource string
		// replaced: the object there has another UID by now.
		replaced bool
		want     []string
	}{
		"a PodGroup that was changed":  {"podgroups", false, []string{"patch/status", "patch/status"}},
		"a PodGroup that was replaced": {"podgroups", true, []string{"patch/status"}},
		"a pod that was changed":       {"pods", false, []string{"patch/status", "patch/status"}},
		"a pod that was replaced":      {"pods", true, []string{"patch/status"}},
	} {
		t.Run(name, func(t *testing.T) {
			listFirst(t)
			synctest.Test(t, func(t *testing.T) {
				var object runtime.Object = podGroup(1)
				if tc.resource == "pods" {
					object = newPod("a")
				}
				d := newFixture(t, object)
				fake, key := &d.groups.Fake, train
				if tc.resource == "pods" {
					fake, key = &d.kube.Fake, model.JobKey{Source: model.FromPod, Namespace: "ns", Name: "a"}
				}
				first := true
				fake.PrependReactor("patch", tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					if first {
						first = false
						return true, nil, conflict
					}
					return false, nil, nil
				})
				fake.PrependReactor("get", tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					if !tc.replaced {
						return false, nil, nil
					}
					if tc.resource == "pods" {
						p := newPod("a")
						p.UID = "another"
						return true, p, nil
					}
					return true, podGroup(1, func(g *volcano.PodGroup) { g.UID = "another" }), nil
				})
				d.Waits(key, noRoom)
				go d.Run(t.Context())
				time.Sleep(3 * collected)
				if diff := cmp.Diff(tc.want, d.writes(fake.Actions(), tc.resource)); diff != "" {
					t.Errorf("writes (-want,+got)\n%s", diff)
				}
			})
		})
	}
}
