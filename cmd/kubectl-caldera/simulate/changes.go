// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// changes are what is done to the objects before a simulation.
type changes struct{ add, drain, set []string }

func (c *changes) addFlags(set *pflag.FlagSet) {
	set.StringArrayVar(&c.add, "add", nil, "Add the objects of a YAML file or directory. May be given several times, as --drain and --set may.")
	set.StringArrayVar(&c.drain, "drain", nil, "Drain a node of this name.")
	set.StringArrayVar(&c.set, "set", nil, "Set a field, like queue.research.capability.cpu=9.")
}

// read completes objects, and returns them with the changes to be made. Names without a namespace are in the one given.
func (c *changes) read(objects []scenario.Sourced, now time.Time, namespace string) (complete []scenario.Object, all []change.Change, err error) {
	var added []scenario.Sourced
	var errs []error
	for _, path := range c.add {
		read, err := scenario.Load(path)
		added, errs = append(added, read...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	// What is added is the youngest.
	complete, err = scenario.Complete(append(objects, added...), now)
	if err != nil {
		return nil, nil, err
	}
	there := len(complete) - len(added)
	if len(added) > 0 {
		all = append(all, change.Add{Objects: complete[there:]})
	}
	for _, node := range c.drain {
		all = append(all, change.Drain{Node: node, Now: metav1.NewTime(now)})
	}
	for _, text := range c.set {
		all = append(all, change.Set{Text: text, Namespace: namespace})
	}
	// What cannot be changed is told at once.
	_, err = change.Apply(complete[:there], all...)
	return complete[:there], all, err
}
