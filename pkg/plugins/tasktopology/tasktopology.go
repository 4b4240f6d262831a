// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tasktopology is the plugin TaskTopology: tasks of a job are placed near others of it, or apart from them, by their
// roles.
package tasktopology

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/lru"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/topology/buckets"
)

// TaskTopology scores nodes for the tasks of jobs whose PodGroups have annotations about their roles.
type TaskTopology struct {
	state *model.State
	// told are what was last said about the annotations of jobs.
	told *lru.Cache
}

var (
	_ fwk.PreFilterPlugin     = &TaskTopology{}
	_ fwk.PreFilterExtensions = &TaskTopology{}
	_ fwk.PreScorePlugin      = &TaskTopology{}
	_ fwk.ScorePlugin         = &TaskTopology{}
	_ fwk.SignPlugin          = &TaskTopology{}
	_ fwk.EnqueueExtensions   = &TaskTopology{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.TaskTopology

// complaints is of how many jobs it is remembered what was said about them.
const complaints = 1024

// New returns the factory of the plugin, which takes no arguments.
func New(state *model.State) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
		return &TaskTopology{state: state, told: lru.New(complaints)}, nil
	}
}

// Name returns the plugin's name.
func (pl *TaskTopology) Name() string { return Name }

// EventsToRegister returns no events: the plugin refuses no pod.
func (pl *TaskTopology) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// stateKey is where a plan keeps how far it has come.
const stateKey fwk.StateKey = Name

type cycle struct{ *buckets.Progress }

// Clone implements fwk.StateData.
func (c cycle) Clone() fwk.StateData { return cycle{c.Progress.Clone()} }

func progressOf(state fwk.CycleState) *buckets.Progress {
	if data, err := state.Read(stateKey); err == nil {
		return data.(cycle).Progress
	}
	return nil
}

// PreFilter finds the bucket of the pod. It only has something to say while its job is planned: members go where that says.
func (pl *TaskTopology) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	job := gang.Planned(state)
	if job == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	buckets, err := buckets.Of(job)
	if err != nil {
		pl.complain(job, err.Error())
	}
	if buckets == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	progress := buckets.Begin(job, pod.UID)
	if progress == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	gang.Depend(state, gang.OnJob|gang.OnPodsElsewhere|gang.ScoresOnPodsElsewhere)
	state.Write(stateKey, cycle{progress})
	return nil, nil
}

// complain tells what is wrong with the annotations of a job, once.
func (pl *TaskTopology) complain(job *model.Job, problem string) {
	type said struct {
		uid     types.UID
		problem string
	}
	this := said{job.UID, problem}
	if before, ok := pl.told.Get(job.Key); !ok || before != this {
		pl.told.Add(job.Key, this)
		pl.state.Complain(job.Group.Object, problem)
	}
}

// PreFilterExtensions returns the plugin itself.
func (pl *TaskTopology) PreFilterExtensions() fwk.PreFilterExtensions { return pl }

// AddPod counts a pod that is planned.
func (pl *TaskTopology) AddPod(_ context.Context, state fwk.CycleState, _ *corev1.Pod, added fwk.PodInfo, info fwk.NodeInfo) *fwk.Status {
	if progress := progressOf(state); progress != nil {
		pod := added.GetPod()
		progress.Place(pod.UID, model.RoleOf(pod), info.Node().Name)
	}
	return nil
}

// RemovePod counts a planned pod as gone.
func (pl *TaskTopology) RemovePod(_ context.Context, state fwk.CycleState, _ *corev1.Pod, removed fwk.PodInfo, _ fwk.NodeInfo) *fwk.Status {
	if progress := progressOf(state); progress != nil {
		pod := removed.GetPod()
		progress.Remove(pod.UID, model.RoleOf(pod))
	}
	return nil
}

// PreScore skips pods that are in no bucket.
func (pl *TaskTopology) PreScore(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if progressOf(state) == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// The scale of the scores: Volcano's are 100 times what the node takes of the largest bucket, -100 and less where many tasks
// are to be apart from. Half of that, from the middle, is what fits between 0 and 100; the profile's weight is twice Volcano's.
const (
	middle = (fwk.MaxScore + fwk.MinScore) / 2
	span   = fwk.MaxScore - middle
)

// Score is how well the node suits the pod's bucket: 100 if it takes the whole of the largest, 50 if it takes nothing, and less,
// down to 0, if there are tasks on it that the pod is to be apart from.
func (pl *TaskTopology) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	progress := progressOf(state)
	if progress == nil {
		return 0, nil
	}
	score := progress.Score(info.Node().Name, node.Free(info, progress.Asks()))
	return middle + int64(math.Round(float64(span)*min(1, max(-1, score)))), nil
}

// ScoreExtensions returns nil: scores are not normalised, because that would change their proportion to other plugins'.
func (pl *TaskTopology) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod says that pods of one job and role are alike as far as this plugin goes.
func (pl *TaskTopology) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return []fwk.SignFragment{{Key: "caldera.TaskTopology", Value: model.JobByMarks(pod).String() + "/" + model.RoleOf(pod)}}, nil
}
