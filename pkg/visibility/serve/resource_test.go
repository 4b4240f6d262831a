// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/caldera-scheduler/caldera/internal/testing/simulated"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
	"github.com/caldera-scheduler/caldera/pkg/visibility/serve"
)

// jobs are the views of seven jobs of namespace ml and one of web. Two in ml have the label team, and those of queue narrow exceed what it may hold.
func jobs(t *testing.T) serve.Store {
	t.Helper()
	var b strings.Builder
	b.WriteString(`
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '16', memory: 32Gi, pods: '110'}}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: narrow}, spec: {weight: 1, capability: {cpu: '1'}}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: lab}, spec: {weight: 1}}
`)
	for i := range 8 {
		namespace, queue, team := "ml", "lab", ""
		if i == 7 {
			namespace = "web"
		}
		if i < 2 {
			team = ", labels: {team: a}"
		}
		if i > 3 {
			queue = "narrow"
		}
		fmt.Fprintf(&b, `---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: j%[1]d, namespace: %[2]s, creationTimestamp: '2026-08-15T11:58:00Z'%[4]s}, spec: {minMember: 1, queue: %[3]s}}
---
apiVersion: v1
kind: Pod
metadata: {name: j%[1]d, namespace: %[2]s, annotations: {scheduling.k8s.io/group-name: j%[1]d}, creationTimestamp: '2026-08-15T11:00:00Z'}
spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {requests: {cpu: '2'}}}]}
`, i, namespace, queue, team)
	}
	box := simulated.Settled(t, b.String())
	views := visibility.New(visibility.Source{
		State: box.Core.State, Dispatch: box.Core.Dispatcher.View(), Ledger: box.Core.Evictions.Ledger, Clock: box.Clock,
	})
	return serve.StoreOf(v1alpha1.JobViews, views)
}

// names lists views and returns their names with namespaces.
func names(t *testing.T, list runtime.Object) []string {
	t.Helper()
	var found []string
	err := meta.EachListItem(list, func(o runtime.Object) error {
		m, err := meta.Accessor(o)
		found = append(found, m.GetNamespace()+"/"+m.GetName())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestListsAreNarrowedDown(t *testing.T) {
	t.Parallel()
	store := jobs(t)
	field := func(name, value string) *internalversion.ListOptions {
		return &internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector(name, value)}
	}
	for _, c := range []struct {
		namespace string
		options   *internalversion.ListOptions
		want      string
	}{
		{"web", nil, "web/j7"},
		{"none", nil, ""},
		{"", field("status.queue", "narrow"), "ml/j4 ml/j5 ml/j6 web/j7"},
		{"ml", field("status.queue", "narrow"), "ml/j4 ml/j5 ml/j6"},
		{"ml", field("status.waiting", "false"), "ml/j0 ml/j1 ml/j2 ml/j3"},
		{"", field("status.reason.type", "NotAdmitted"), "ml/j4 ml/j5 ml/j6 web/j7"},
		{"", field("metadata.namespace", "web"), "web/j7"},
		{"", field("metadata.name", "j2"), "ml/j2"},
		{"ml", field("status.object.name", "j2"), "ml/j2"},
		{"web", field("status.object.name", "j2"), ""},
		{"", &internalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"team": "a"})}, "ml/j0 ml/j1"},
	} {
		list, err := store.List(request.WithNamespace(t.Context(), c.namespace), c.options)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if got := strings.Join(names(t, list), " "); got != c.want {
			t.Errorf("namespace %q by %+v: got %q, want %q", c.namespace, c.options, got, c.want)
		}
	}
	if err := serve.Selectable(v1alpha1.JobViews, "status.queue"); err != nil {
		t.Error(err)
	}
	if err := serve.Selectable(v1alpha1.JobViews, "status.queu"); err == nil || !strings.Contains(err.Error(), "status.queue=") {
		t.Errorf("a misspelt field is answered by %v, want the fields that there are", err)
	}
}

// TestEachViewIsFoundByItsName, and none by a name that another namespace has.
func TestEachViewIsFoundByItsName(t *testing.T) {
	t.Parallel()
	store := jobs(t)
	list, err := store.List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	found := names(t, list)
	if len(found) != 8 {
		t.Fatalf("%v are listed, want eight jobs", found)
	}
	for _, full := range found {
		for _, namespace := range []string{"ml", "web", "none"} {
			_, name, _ := strings.Cut(full, "/")
			object, err := store.Get(request.WithNamespace(t.Context(), namespace), name, nil)
			if is := full == namespace+"/"+name; is != (err == nil) || !is && !apierrors.IsNotFound(err) {
				t.Errorf("of %s in namespace %s is said %v", full, namespace, err)
				continue
			}
			if m, _ := meta.Accessor(object); err == nil && m.GetNamespace()+"/"+m.GetName() != full {
				t.Errorf("%s has the view of %s/%s", full, m.GetNamespace(), m.GetName())
			}
		}
	}
}

// Pages of any size have all views together, each once and in order.
func TestPagesHaveEachViewOnce(t *testing.T) {
	t.Parallel()
	store := jobs(t)
	ctx := request.WithNamespace(t.Context(), "")
	whole, err := store.List(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for size := range 9 {
		if size == 0 {
			continue
		}
		var got []string
		options := &internalversion.ListOptions{Limit: int64(size)}
		for {
			page, err := store.List(ctx, options)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, names(t, page)...)
			m, err := meta.ListAccessor(page)
			if err != nil {
				t.Fatal(err)
			}
			if left := m.GetRemainingItemCount(); left != nil && *left != int64(8-len(got)) {
				t.Errorf("pages of %d: after %d views, %d remain", size, len(got), *left)
			}
			if options.Continue = m.GetContinue(); options.Continue == "" {
				break
			}
		}
		if diff := cmp.Diff(names(t, whole), got); diff != "" {
			t.Errorf("pages of %d (-want,+got)\n%s", size, diff)
		}
	}
	for token, is := range map[string]func(error) bool{"!": apierrors.IsBadRequest, "bWwvZ29uZQ": apierrors.IsResourceExpired} {
		if _, err := store.List(ctx, &internalversion.ListOptions{Continue: token}); !is(err) {
			t.Errorf("continue %q is answered by %v", token, err)
		}
	}
}

// An answer is written while others are: who writes it puts its kind into it.
func TestManyGetTheSameJob(t *testing.T) {
	t.Parallel()
	store := jobs(t)
	ctx := request.WithNamespace(t.Context(), "ml")
	info, _ := runtime.SerializerInfoForMediaType(serve.Codecs().SupportedMediaTypes(), runtime.ContentTypeJSON)
	encoder := serve.Codecs().EncoderForVersion(info.Serializer, v1alpha1.SchemeGroupVersion)
	var many sync.WaitGroup
	for range 8 {
		many.Go(func() {
			for range 20 {
				object, err := store.Get(ctx, "j1", nil)
				if err == nil {
					err = encoder.Encode(object, io.Discard)
				}
				if err != nil {
					t.Error(err)
				}
				list, err := store.List(ctx, nil)
				if err == nil {
					err = encoder.Encode(list, io.Discard)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	many.Wait()
	if _, err := store.Get(ctx, "j7", nil); !apierrors.IsNotFound(err) {
		t.Errorf("another namespace's job is answered by %v, want that there is none", err)
	}
}

func TestTablesSayWhy(t *testing.T) {
	t.Parallel()
	store := jobs(t)
	list, err := store.List(request.WithNamespace(t.Context(), "web"), nil)
	if err != nil {
		t.Fatal(err)
	}
	table, err := store.ConvertToTable(t.Context(), list, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var head []string
	for _, c := range table.ColumnDefinitions {
		head = append(head, c.Name)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("there are %d rows, want 1", len(table.Rows))
	}
	got := fmt.Sprintln(head) + fmt.Sprint(table.Rows[0].Cells)
	if want := "[Name Queue Phase Pods Waiting Reason Age]\n[j7 narrow Pending 0/1 60m NotAdmitted 2m]"; got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
	one, err := store.Get(request.WithNamespace(t.Context(), "web"), "j7", nil)
	if err != nil {
		t.Fatal(err)
	}
	single, err := store.ConvertToTable(t.Context(), one, &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(single.ColumnDefinitions) != 0 || !slices.EqualFunc(single.Rows, table.Rows, func(a, b metav1.TableRow) bool { return cmp.Equal(a.Cells, b.Cells) }) {
		t.Errorf("without a head, one job is %+v", single)
	}
}
