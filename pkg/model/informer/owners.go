// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// OwnerPatience is how long a pod waits for news of the controller that it names before the API server is asked for it. Controllers are
// there before their pods, so that the news is late only if a watch is.
const OwnerPatience = time.Second

// courtesy is the least time between two requests for controllers: pods can name as many that do not exist as somebody likes.
const courtesy = 20 * time.Millisecond

// controller is an object that makes pods, and may make them a gang.
type controller interface {
	metav1.Object
	runtime.Object
}

// controllers are those of one kind.
type controllers struct {
	apiVersion, kind string
	// store has those that were seen. It is nil until they are followed: then nobody waits for them.
	store cache.Store
	// late: they are seen for the first time, and their pods may have been told to the model already.
	late bool
	ask  ask
}

// ask asks the API server for one object.
type ask func(ctx context.Context, kube kubernetes.Interface, namespace, name string) (metav1.Object, error)

// Owners feeds the model the pods, and the gangs that controllers make of their pods by an annotation, without any PodGroup. A pod whose
// controller has not been seen yet is told to the model once it has: nobody else knows whether the pod is one of a gang.
type Owners struct {
	state *model.State
	kube  kubernetes.Interface
	// synced report whether the controllers that were there have been delivered, and pods whether the pods have.
	synced []cache.DoneChecker
	pods   cache.DoneChecker
	// seen is closed once the controllers that were there have been delivered. Pods come after them, in their order.
	seen chan struct{}

	mu sync.Mutex
	// kinds are those that can make gangs, jobs among them; the list does not change.
	kinds []*controllers
	jobs  *controllers
	// gangs are the controllers that make gangs, as the model was last told.
	gangs map[types.UID]controller
	// absent are the controllers that pods name and that have not been seen.
	absent absentees
}

// NewOwners returns what feeds the model pods and gangs by their owners. It registers what it needs of the factory, which the caller starts, and waits
// for Run. With no patience a controller that the informers do not know does not exist, which is so where all objects are in memory.
func NewOwners(state *model.State, factory informers.SharedInformerFactory, kube kubernetes.Interface, now clock.WithTicker, patience time.Duration) (*Owners, error) {
	o := &Owners{
		state: state, kube: kube, seen: make(chan struct{}), gangs: map[types.UID]controller{}, absent: newAbsentees(now, patience),
	}
	apps := factory.Apps().V1()
	for _, kind := range []struct {
		kind     string
		informer cache.SharedIndexInformer
		ask      ask
	}{
		{"ReplicaSet", apps.ReplicaSets().Informer(), func(ctx context.Context, kube kubernetes.Interface, namespace, name string) (metav1.Object, error) {
			return kube.AppsV1().ReplicaSets(namespace).Get(ctx, name, metav1.GetOptions{})
		}},
		{"StatefulSet", apps.StatefulSets().Informer(), func(ctx context.Context, kube kubernetes.Interface, namespace, name string) (metav1.Object, error) {
			return kube.AppsV1().StatefulSets(namespace).Get(ctx, name, metav1.GetOptions{})
		}},
	} {
		known := &controllers{apiVersion: appsv1.SchemeGroupVersion.String(), kind: kind.kind, ask: kind.ask}
		o.kinds = append(o.kinds, known)
		if err := o.follow(known, kind.informer); err != nil {
			return nil, err
		}
	}
	o.jobs = &controllers{
		apiVersion: batchv1.SchemeGroupVersion.String(), kind: "Job",
		ask: func(ctx context.Context, kube kubernetes.Interface, namespace, name string) (metav1.Object, error) {
			return kube.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
		},
	}
	o.kinds = append(o.kinds, o.jobs)
	pods, err := factory.Core().V1().Pods().Informer().AddEventHandler(handlers(o.put, o.remove))
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	o.pods = pods.HasSyncedChecker()
	return o, nil
}

// follow has the controllers of a kind told to the model.
func (o *Owners) follow(kind *controllers, informer cache.SharedIndexInformer) error {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { o.saw(kind, object.(controller), false) },
		UpdateFunc: func(before, object any) {
			if replaced(before, object) {
				o.lost(kind, before.(controller))
				o.saw(kind, object.(controller), false)
				return
			}
			o.saw(kind, object.(controller), true)
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if object, ok := object.(controller); ok {
				o.lost(kind, object)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching objects of kind %s: %w", kind.kind, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	kind.store = informer.GetStore()
	o.synced = append(o.synced, registration.HasSyncedChecker())
	return nil
}

// Run has the model told of controllers, and then of pods. It returns once all that was there has been delivered, and goes on until the context
// ends.
func (o *Owners) Run(ctx context.Context) error {
	// Also where the context ends before all is seen.
	context.AfterFunc(ctx, o.absent.overdue.ShutDown)
	seen := sync.OnceFunc(func() { close(o.seen) })
	defer seen()
	err := o.followJobs(ctx)
	synced := slices.Clone(o.synced)
	switch {
	case errors.Is(err, errNotAllowed):
		klog.FromContext(ctx).Error(err, "Cannot follow Jobs: their pods are no gangs; asking again")
		go o.followJobsLater(ctx)
	case err != nil:
		return err
	}
	if !cache.WaitFor(ctx, "", synced...) {
		return fmt.Errorf("waiting for controllers of pods: %w", context.Cause(ctx))
	}
	seen()
	go func() {
		for o.look(ctx) {
			select {
			case <-ctx.Done():
			case <-time.After(courtesy):
			}
		}
	}()
	if !cache.WaitFor(ctx, "", o.pods) {
		return fmt.Errorf("waiting for pods: %w", context.Cause(ctx))
	}
	return nil
}

// Seen is closed once the controllers that were there have been delivered, or Run has failed.
func (o *Owners) Seen() <-chan struct{} { return o.seen }

// followJobs watches Jobs, which the scheduler's own informers do not. Of each it keeps the meta data.
func (o *Owners) followJobs(ctx context.Context) error {
	if _, err := o.kube.BatchV1().Jobs("").List(ctx, metav1.ListOptions{Limit: 1}); apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(o.kube, 0, informers.WithTransform(trimJob))
	if err := o.follow(o.jobs, factory.Batch().V1().Jobs().Informer()); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	return nil
}

// followJobsLater asks until the Jobs may be read.
func (o *Owners) followJobsLater(ctx context.Context) {
	late := func(late bool) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.jobs.late = late
	}
	err := wait.PollUntilContextCancel(ctx, lookAgain, false, func(ctx context.Context) (bool, error) {
		late(true)
		err := o.followJobs(ctx)
		if err != nil && !errors.Is(err, errNotAllowed) {
			klog.FromContext(ctx).Error(err, "Cannot follow Jobs; asking again")
		}
		return err == nil, nil
	})
	if err == nil {
		cache.WaitFor(ctx, "", o.synced[len(o.synced)-1])
		late(false)
	}
}

func trimJob(object any) (any, error) {
	if job, ok := object.(*batchv1.Job); ok {
		job.ManagedFields = nil
		job.Spec, job.Status = batchv1.JobSpec{}, batchv1.JobStatus{}
	}
	return object, nil
}

// put tells the model of a pod, once its controller has been seen.
func (o *Owners) put(pod *corev1.Pod) {
	<-o.seen
	o.mu.Lock()
	defer o.mu.Unlock()
	o.absent.letGo(pod.UID)
	if !o.holds(pod) {
		o.state.UpsertPod(pod)
	}
}

// remove tells the model that a pod is not among the live ones any more.
func (o *Owners) remove(pod *corev1.Pod) {
	<-o.seen
	o.mu.Lock()
	defer o.mu.Unlock()
	o.absent.letGo(pod.UID)
	o.state.LeavePod(pod.UID)
}

// holds reports whether a pod has to wait for its controller.
func (o *Owners) holds(pod *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || !o.state.Schedules(pod.Spec.SchedulerName) || model.JobByOwner(pod) == (model.JobKey{}) {
		return false
	}
	i := slices.IndexFunc(o.kinds, func(c *controllers) bool {
		return c.kind == ref.Kind && c.apiVersion == ref.APIVersion && c.store != nil
	})
	if i < 0 {
		return false
	}
	kind := o.kinds[i]
	if known, ok, err := kind.store.GetByKey(pod.Namespace + "/" + ref.Name); err == nil && ok && known.(controller).GetUID() == ref.UID {
		// Its handler may not have been called yet.
		o.tell(kind, known.(controller), true)
		return false
	}
	return o.absent.hold(pod, owner{kind.kind, pod.Namespace, ref.Name, ref.UID})
}

// saw tells the model of a controller, and of the pods that waited for it. Pods of one that was known before have been told already.
func (o *Owners) saw(kind *controllers, object controller, before bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tell(kind, object, before || kind.late || o.absent.passed(object.GetUID()))
	o.release(object.GetUID())
}

// lost tells the model that a controller is gone.
func (o *Owners) lost(kind *controllers, object controller) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, gang := o.gangs[object.GetUID()]; gang {
		delete(o.gangs, object.GetUID())
		o.state.DeleteGroup(kind.key(object))
	}
}

// tell tells the model what a controller says of its pods, if that is news. Pods that are jobs of one are looked for if there may be any.
func (o *Owners) tell(kind *controllers, object controller, gather bool) {
	key, uid := kind.key(object), object.GetUID()
	before, was := o.gangs[uid]
	_, is := object.GetAnnotations()[model.MinMemberAnnotation]
	switch {
	case !is && was:
		delete(o.gangs, uid)
		o.state.Disband(key)
	case !is, was && maps.Equal(before.GetAnnotations(), object.GetAnnotations()) && maps.Equal(before.GetLabels(), object.GetLabels()):
	default:
		o.gangs[uid] = object
		o.state.UpsertGroup(key, ownersGroup(kind.kind, object))
		if !was && gather {
			o.state.Gather(key)
		}
	}
}

// release tells the model of the pods that waited for a controller.
func (o *Owners) release(uid types.UID) {
	for _, pod := range o.absent.came(uid) {
		o.state.UpsertPod(pod)
	}
}

// look asks the API server for a controller that pods have waited for too long; false when there is nothing more to do.
func (o *Owners) look(ctx context.Context) bool {
	overdue := o.absent.overdue
	by, quit := overdue.Get()
	if quit {
		return false
	}
	defer overdue.Done(by)
	o.mu.Lock()
	waited := o.absent.waited(by.uid)
	o.mu.Unlock()
	if !waited {
		overdue.Forget(by)
		return true
	}
	kind := o.kinds[slices.IndexFunc(o.kinds, func(c *controllers) bool { return c.kind == by.kind })]
	object, err := kind.ask(ctx, o.kube, by.namespace, by.name)
	logger := klog.FromContext(ctx).WithValues("kind", by.kind, "controller", klog.KRef(by.namespace, by.name), "uid", by.uid)
	switch {
	case err == nil && object.GetUID() == by.uid:
		// The news of it are on their way.
		logger.V(2).Info("Pods wait for news of their controller, which exists")
		overdue.AddAfter(by, o.absent.patience)
	case err == nil, apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		logger.V(2).Info("The controller that pods name cannot be found: each of them is on its own", "err", err)
		overdue.Forget(by)
		o.mu.Lock()
		o.release(by.uid)
		o.mu.Unlock()
	default:
		logger.Error(err, "Cannot tell whether the controller that pods name makes a gang of them; asking again")
		overdue.AddRateLimited(by)
	}
	return true
}

func (c *controllers) key(object metav1.Object) model.JobKey {
	return model.OwnerKey(c.kind, object.GetNamespace(), object.GetName(), object.GetUID())
}

// ownersGroup reads the gang that a controller makes of its pods. A minimum that cannot be read keeps them from starting: nobody
// knows how many of them have to.
func ownersGroup(kind string, object controller) *model.Group {
	annotations := object.GetAnnotations()
	group := &model.Group{
		UID: object.GetUID(), ByOwner: true, Queue: annotations[model.QueueAnnotation], Created: object.GetCreationTimestamp().Time, Object: object,
	}
	said := annotations[model.MinMemberAnnotation]
	least, err := strconv.ParseInt(said, 10, 32)
	if group.MinMember = int(least); err != nil || least < 1 {
		group.MinMember = -1
		group.Problem = fmt.Sprintf("annotation %s of %s %s/%s is %.100q: write a whole number of at least 1; its pods do not start until then",
			model.MinMemberAnnotation, kind, object.GetNamespace(), object.GetName(), said)
	}
	if set, ok := object.(*appsv1.StatefulSet); ok && set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement && least > 1 {
		group.Problem = model.Problems(group.Problem, fmt.Sprintf(
			"spec.podManagementPolicy of StatefulSet %s/%s is %s, by which a pod is made when the one before it runs: %d can never start together; set it to %s",
			set.Namespace, set.Name, cmp.Or(set.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement), least, appsv1.ParallelPodManagement))
	}
	var problem string
	group.WaitingTime, problem = waitingTime(annotations)
	group.Problem = model.Problems(group.Problem, problem)
	readTerms(group, kind+" "+object.GetNamespace()+"/"+object.GetName(), annotations)
	return group
}
