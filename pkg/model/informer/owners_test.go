// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// workUID is that of the controller "work".
const workUID = "work-uid"

// meta is that of the controller "work", with annotations in pairs of key and value.
func meta(annotations ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "ns", Name: "work", UID: workUID, Annotations: map[string]string{}}
	for i := 0; i < len(annotations); i += 2 {
		m.Annotations[annotations[i]] = annotations[i+1]
	}
	return m
}

func minimum(said string) []string { return []string{model.MinMemberAnnotation, said} }

func jobOf(annotations ...string) *batchv1.Job { return &batchv1.Job{ObjectMeta: meta(annotations...)} }

// by makes a pod one of the controller "work".
func by(apiVersion, kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "work", UID: workUID, Controller: new(true)}}
	}
}

var byJob = by("batch/v1", "Job")

// gangOf is the key of the gang that the controller "work" makes.
func gangOf(kind string) model.JobKey { return model.OwnerKey(kind, "ns", "work", workUID) }

func alone(pod string) model.JobKey {
	return model.JobKey{Source: model.FromPod, Namespace: "ns", Name: pod}
}

// belongs returns the job of a pod as the model has it; the zero key if the pod is unknown.
func belongs(state *model.State, pod types.UID) model.JobKey {
	synctest.Wait()
	if task := state.Task(pod); task != nil {
		return task.Job
	}
	return model.JobKey{}
}

func expect(t *testing.T, state *model.State, when string, pod types.UID, want model.JobKey) {
	t.Helper()
	if got := belongs(state, pod); got != want {
		t.Errorf("%s pod %s belongs to %v, want %v", when, pod, got, want)
	}
}

// TestControllersThatMakeGangs: each kind does, by its annotation. The queue is the controller's, the priority that of its pods.
func TestControllersThatMakeGangs(t *testing.T) {
	annotations := []string{model.MinMemberAnnotation, "3", model.QueueAnnotation, "research", model.HalfTimeoutAnnotation, "90s", "volcano.sh/sla-waiting-time", "5m"}
	for kind, tc := range map[string]struct {
		apiVersion string
		object     runtime.Object
		none       bool
	}{
		"ReplicaSet":  {"apps/v1", &appsv1.ReplicaSet{ObjectMeta: meta(annotations...)}, false},
		"StatefulSet": {"apps/v1", &appsv1.StatefulSet{ObjectMeta: meta(annotations...)}, false},
		"Job":         {"batch/v1", jobOf(annotations...), false},
		"DaemonSet":   {"apps/v1", &appsv1.DaemonSet{ObjectMeta: meta(annotations...)}, true},
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				state := newState()
				pod := newPod("p", "p", by(tc.apiVersion, kind), func(p *corev1.Pod) { p.Spec.Priority = new(int32(7)) })
				startCore(t, state, tc.object, pod)
				if tc.none {
					expect(t, state, "of a kind that makes no gangs", "p", alone("p"))
					return
				}
				expect(t, state, "at the start", "p", gangOf(kind))
				job := state.Summary(gangOf(kind))
				if job == nil || job.Min() != 3 || job.Queue != "research" || job.Priority != 7 || job.UID != workUID || job.Group.WaitingTime != 5*time.Minute ||
					job.Group.Terms.HalfTimeout != model.Say(90*time.Second) || job.Group.Problem != "" && kind != "StatefulSet" {
					t.Errorf("the gang is %+v of %+v", job, job.Group)
				}
				if r := job.Blocked(); r.Kind != model.NotEnoughTasks || !strings.Contains(r.Message, "1 of 3 pods exist: create the missing ones, or lower annotation "+model.MinMemberAnnotation) {
					t.Errorf("it waits because of %+v", r)
				}
			})
		})
	}
}

// TestMinimumsOfControllers: one that cannot be read keeps the pods from starting, and says what to change.
func TestMinimumsOfControllers(t *testing.T) {
	set := func(policy appsv1.PodManagementPolicyType, said string) runtime.Object {
		return &appsv1.StatefulSet{ObjectMeta: meta(minimum(said)...), Spec: appsv1.StatefulSetSpec{PodManagementPolicy: policy}}
	}
	for name, tc := range map[string]struct {
		object  runtime.Object
		kind    string
		want    int
		problem string
	}{
		"a number":                {jobOf(minimum("5")...), "Job", 5, ""},
		"one":                     {jobOf(minimum("1")...), "Job", 1, ""},
		"a word":                  {jobOf(minimum("five")...), "Job", -1, `group-min-member of Job ns/work is "five": write a whole number of at least 1; its pods do not start until then`},
		"nothing":                 {jobOf(minimum("")...), "Job", -1, `is "": write a whole number`},
		"zero":                    {jobOf(minimum("0")...), "Job", -1, `is "0": write a whole number`},
		"less":                    {jobOf(minimum("-3")...), "Job", -1, `is "-3": write a whole number`},
		"more than 32 bits":       {jobOf(minimum("99999999999")...), "Job", -1, `is "99999999999": write a whole number`},
		"pods at once":            {set(appsv1.ParallelPodManagement, "5"), "StatefulSet", 5, ""},
		"one pod after the other": {set("", "5"), "StatefulSet", 5, "spec.podManagementPolicy of StatefulSet ns/work is OrderedReady, by which a pod is made when the one before it runs: 5 can never start together; set it to Parallel"},
		"one pod":                 {set(appsv1.OrderedReadyPodManagement, "1"), "StatefulSet", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var complaints []string
				state := newState(func(c model.Change) {
					for _, complaint := range c.Complaints {
						complaints = append(complaints, complaint.Problem)
					}
				})
				startCore(t, state, tc.object)
				job := state.Summary(gangOf(tc.kind))
				if job == nil || job.Group.MinMember != tc.want || !strings.Contains(job.Group.Problem, tc.problem) || (tc.problem == "") != (len(complaints) == 0) {
					t.Errorf("read %+v and told %q, want %d and %q", job.Group, complaints, tc.want, tc.problem)
				}
				if r := job.Blocked(); tc.want < 0 && (r.Kind != model.InvalidPodGroup || r.Message != job.Group.Problem) {
					t.Errorf("the gang waits because of %+v", r)
				}
			})
		})
	}
}

// TestWhatAControllerSaysLater: its pods become a gang when it says so, and jobs of one when it says nothing any more.
func TestWhatAControllerSaysLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := newState()
		client := startCore(t, state, jobOf(), newPod("a", "a", byJob), newPod("b", "b", byJob, on("node")), newPod("other", "other"))
		says := func(annotations ...string) {
			_, err := client.BatchV1().Jobs("ns").Update(t.Context(), jobOf(annotations...), metav1.UpdateOptions{})
			check(t, err)
		}
		expect(t, state, "at the start", "a", alone("a"))
		says(minimum("2")...)
		for _, pod := range []types.UID{"a", "b"} {
			expect(t, state, "when it says that it is a gang", pod, gangOf("Job"))
		}
		expect(t, state, "when another one's controller says that it is a gang", "other", alone("other"))
		says(minimum("3")...)
		synctest.Wait()
		if job := state.Summary(gangOf("Job")); job.Min() != 3 {
			t.Errorf("the minimum is %d, and the controller says 3", job.Min())
		}
		labelled := jobOf(minimum("3")...)
		labelled.Labels = map[string]string{model.PreemptableKey: "true"}
		_, err := client.BatchV1().Jobs("ns").Update(t.Context(), labelled, metav1.UpdateOptions{})
		check(t, err)
		synctest.Wait()
		if may, said := state.Summary(gangOf("Job")).Preemptable(); !may || !said {
			t.Errorf("its label says that it may be evicted, and that it may is %t, said %t", may, said)
		}
		says()
		for _, pod := range []types.UID{"a", "b"} {
			expect(t, state, "when it says nothing any more", pod, alone(string(pod)))
		}
		if state.Summary(gangOf("Job")) != nil {
			t.Error("the gang is still known")
		}
	})
}

// TestPodsWhoseControllerIsDeleted wait, and do not start in part: they are about to be deleted.
func TestPodsWhoseControllerIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := newState()
		client := startCore(t, state, jobOf(minimum("2")...), newPod("a", "a", byJob))
		check(t, client.BatchV1().Jobs("ns").Delete(t.Context(), "work", metav1.DeleteOptions{}))
		expect(t, state, "when the Job is deleted", "a", gangOf("Job"))
		if r := state.Summary(gangOf("Job")).Blocked(); r.Kind != model.PodGroupNotFound {
			t.Errorf("it waits because of %+v", r)
		}
		check(t, client.CoreV1().Pods("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}))
		synctest.Wait()
		if state.Summary(gangOf("Job")) != nil {
			t.Error("the gang is known, and nothing of it is left")
		}
	})
}

// slowJobs has news of Jobs come only when they are sent: the API server has the objects, and no list and no watch says so.
func slowJobs(client *fake.Clientset) *watch.FakeWatcher {
	news := watch.NewFake()
	client.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) { return true, &batchv1.JobList{}, nil })
	client.PrependWatchReactor("jobs", func(clienttesting.Action) (bool, watch.Interface, error) { return true, news, nil })
	return news
}

// TestAPodWaitsForNewsOfItsController: nobody knows before whether it is one of a gang. A controller that does not exist is not waited for.
func TestAPodWaitsForNewsOfItsController(t *testing.T) {
	const long = time.Hour
	create := func(t *testing.T, client *fake.Clientset, pod *corev1.Pod) {
		_, err := client.CoreV1().Pods("ns").Create(t.Context(), pod, metav1.CreateOptions{})
		check(t, err)
		synctest.Wait()
	}
	open := func(t *testing.T, objects ...runtime.Object) (*model.State, *fake.Clientset, *watch.FakeWatcher) {
		state, client := newState(), fake.NewClientset(objects...)
		news := slowJobs(client)
		follow(t, state, client)
		return state, client, news
	}
	for name, play := range map[string]func(t *testing.T){
		"the controller is a gang's": func(t *testing.T) {
			job := jobOf(minimum("2")...)
			state, client, news := open(t, job)
			create(t, client, newPod("a", "a", byJob))
			time.Sleep(long)
			expect(t, state, "while the news are on their way", "a", model.JobKey{})
			news.Add(job)
			expect(t, state, "when the news have come", "a", gangOf("Job"))
		},
		"the controller makes no gang": func(t *testing.T) {
			job := jobOf()
			state, client, news := open(t, job)
			create(t, client, newPod("a", "a", byJob))
			news.Add(job)
			expect(t, state, "when the news have come", "a", alone("a"))
		},
		"the controller does not exist": func(t *testing.T) {
			state, client, _ := open(t)
			create(t, client, newPod("a", "a", byJob))
			expect(t, state, "at first", "a", model.JobKey{})
			time.Sleep(2 * time.Second)
			expect(t, state, "after the API server was asked", "a", alone("a"))
		},
		"another one has its name": func(t *testing.T) {
			other := jobOf(minimum("2")...)
			other.UID = "other-uid"
			state, client, news := open(t, other)
			news.Add(other)
			create(t, client, newPod("a", "a", byJob))
			expect(t, state, "at first", "a", model.JobKey{})
			time.Sleep(2 * time.Second)
			expect(t, state, "after the API server was asked", "a", alone("a"))
		},
		"the API server cannot be asked for a while": func(t *testing.T) {
			state, client, _ := open(t)
			var fails atomic.Bool
			fails.Store(true)
			client.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
				return fails.Load(), nil, errors.New("overloaded")
			})
			create(t, client, newPod("a", "a", byJob))
			time.Sleep(time.Minute)
			expect(t, state, "while it cannot be asked", "a", model.JobKey{})
			fails.Store(false)
			time.Sleep(long)
			expect(t, state, "when it can", "a", alone("a"))
		},
		"the pod changes, is placed and is deleted meanwhile": func(t *testing.T) {
			job := jobOf(minimum("2")...)
			state, client, news := open(t, job)
			create(t, client, newPod("a", "a", byJob))
			create(t, client, newPod("b", "b", byJob))
			create(t, client, newPod("c", "c", byJob))
			for _, p := range []*corev1.Pod{newPod("a", "a", byJob, in("train")), newPod("b", "b", byJob, on("node"))} {
				_, err := client.CoreV1().Pods("ns").Update(t.Context(), p, metav1.UpdateOptions{})
				check(t, err)
			}
			check(t, client.CoreV1().Pods("ns").Delete(t.Context(), "c", metav1.DeleteOptions{}))
			expect(t, state, "when it names a group", "a", train)
			expect(t, state, "when it is on a node", "b", alone("b"))
			news.Add(job)
			expect(t, state, "as it names a group", "a", train)
			expect(t, state, "when the news have come", "b", gangOf("Job"))
			expect(t, state, "after it was deleted", "c", model.JobKey{})
		},
		"the pod is of another scheduler, or on a node": func(t *testing.T) {
			state, client, _ := open(t)
			create(t, client, newPod("a", "a", byJob, func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }, on("node")))
			create(t, client, newPod("b", "b", byJob, on("node")))
			if got := state.Totals().Used.String(); got != "" && !strings.Contains(got, "cpu=2") {
				t.Errorf("the nodes hold %s", got)
			}
			expect(t, state, "at once", "b", alone("b"))
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, play) })
	}
}

// TestManyControllersThatDoNotExist are asked for one after the other, with time for other requests between them.
func TestManyControllersThatDoNotExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state, client := newState(), fake.NewClientset()
		follow(t, state, client)
		var asked []time.Time
		client.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
			asked = append(asked, time.Now())
			return false, nil, nil
		})
		const pods = 100
		for i := range pods {
			name := fmt.Sprintf("p%d", i)
			pod := newPod(name, types.UID(name), byJob, func(p *corev1.Pod) { p.OwnerReferences[0].UID = types.UID(name) })
			_, err := client.CoreV1().Pods("ns").Create(t.Context(), pod, metav1.CreateOptions{})
			check(t, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(asked) != pods || asked[pods-1].Sub(asked[0]) < pods*15*time.Millisecond {
			t.Errorf("%d requests in %s, want %d in at least 1.5s", len(asked), asked[len(asked)-1].Sub(asked[0]), pods)
		}
		for i := range pods {
			name := fmt.Sprintf("p%d", i)
			expect(t, state, "after it was asked", types.UID(name), alone(name))
		}
	})
}

// TestJobsThatMayNotBeRead: a scheduler whose role is older than itself takes their pods one by one, and knows their gangs once it may.
func TestJobsThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state, client := newState(), fake.NewClientset(jobOf(minimum("2")...), newPod("a", "a", byJob))
		var forbidden atomic.Bool
		forbidden.Store(true)
		client.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
			return forbidden.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "", errors.New("no role says so"))
		})
		follow(t, state, client)
		expect(t, state, "while Jobs may not be read", "a", alone("a"))
		forbidden.Store(false)
		time.Sleep(time.Minute)
		expect(t, state, "when they may", "a", gangOf("Job"))
	})
}

// TestFinishedMembersOfAnOwnersGangCount: they are as good as running.
func TestFinishedMembersOfAnOwnersGangCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := newState()
		startCore(t, state, jobOf(minimum("2")...), newPod("a", "a", byJob, succeeded), newPod("b", "b", byJob, on("node")))
		expect(t, state, "after it succeeded", "a", gangOf("Job"))
		if job := state.Summary(gangOf("Job")); job == nil || !job.Started() {
			t.Errorf("the gang has not started: %+v", job)
		}
	})
}

// TestAReplacedControllerIsNotItsPredecessor: a Job is deleted and made again, and the watch tells of one update. The pods of the first do
// not join the gang of the second.
func TestAReplacedControllerIsNotItsPredecessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state, client := newState(), fake.NewClientset(newPod("a", "a", byJob))
		news := slowJobs(client)
		first, second := jobOf(minimum("2")...), jobOf(minimum("3")...)
		second.UID = "second-uid"
		follow(t, state, client)
		news.Add(first)
		expect(t, state, "with the first", "a", gangOf("Job"))
		news.Modify(second)
		synctest.Wait()
		keys := map[string]bool{}
		for job := range state.Snapshot().Jobs {
			keys[fmt.Sprintf("%s has a group: %t", job.Key, job.Group != nil)] = true
		}
		want := map[string]bool{"ns/job/work-work-uid has a group: false": true, "ns/job/work-second-u has a group: true": true}
		if diff := cmp.Diff(want, keys); diff != "" {
			t.Errorf("jobs (-want,+got)\n%s", diff)
		}
	})
}
