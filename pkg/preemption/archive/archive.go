// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive keeps the ledger of evictions in ConfigMaps, so that the scheduler that leads next has it. It is read once, when a scheduler
// begins to lead.
package archive

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

const (
	// Volumes is in how many ConfigMaps decisions are, by turns.
	Volumes = 8
	// Each is how many are in one, so that the last 875 to 1,000 are kept.
	Each = 125
	// prefix is how the names of the ConfigMaps begin. A number from 0 follows.
	prefix = "caldera-ledger-"
	// every is how often the ledger is looked at for changes.
	every = time.Second
	// patience is how long a request may take.
	patience     = 10 * time.Second
	fieldManager = "caldera-ledger"
)

// Archive keeps a ledger.
type Archive struct {
	Ledger *eviction.Ledger
	Client kubernetes.Interface
	// Namespace is that of the ConfigMaps.
	Namespace string
	Clock     clock.WithTicker
}

// Name is the name of a ConfigMap, by a number from 0 to Volumes-1.
func Name(volume uint64) string { return prefix + strconv.FormatUint(volume, 10) }

// volumeOf is the ConfigMap that a decision is in, and how many were in it before it was used anew.
func volumeOf(id uint64) (volume, edition uint64) {
	n := (id - 1) / Each
	return n % Volumes, n / Volumes
}

// Load has the ledger remember what was kept. An error says what could not be read; the ledger has the rest.
func (a *Archive) Load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var decisions []eviction.Decision
	var errs []error
	for volume := range uint64(Volumes) {
		kept, err := a.read(ctx, volume)
		if err != nil {
			errs = append(errs, err)
		}
		decisions = append(decisions, kept...)
	}
	a.Ledger.Restore(decisions, a.Clock.Now())
	return errors.Join(errs...)
}

func (a *Archive) read(ctx context.Context, volume uint64) ([]eviction.Decision, error) {
	object, err := a.Client.CoreV1().ConfigMaps(a.Namespace).Get(ctx, Name(volume), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", a.Namespace, Name(volume), err)
	}
	decisions, err := decode(object.BinaryData[key])
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s, which may be deleted: %w", a.Namespace, Name(volume), err)
	}
	return decisions, nil
}

// Run writes what changes, until the context ends.
func (a *Archive) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	written, said := map[uint64]uint64{}, ""
	for {
		if err := a.write(ctx, written); err == nil {
			said = ""
		} else if text := err.Error(); text != said && ctx.Err() == nil {
			said = text
			logger.Error(err, "The ledger of evictions is not kept for the scheduler that leads next; trying again")
		}
		select {
		case <-ctx.Done():
			return
		case <-a.Clock.After(every):
		}
	}
}

// write writes the ConfigMaps of which the decisions have changed since.
func (a *Archive) write(ctx context.Context, written map[uint64]uint64) error {
	volumes := map[uint64][]eviction.Decision{}
	newest := map[uint64]uint64{}
	for _, d := range a.Ledger.Latest(Volumes * Each) {
		volume, edition := volumeOf(d.ID)
		if known, ok := newest[volume]; !ok || edition == known {
			newest[volume], volumes[volume] = edition, append(volumes[volume], d)
		}
	}
	var errs []error
	for volume, decisions := range volumes {
		slices.Reverse(decisions)
		if mark := fingerprint(decisions); written[volume] != mark {
			if err := a.put(ctx, volume, decisions); err != nil {
				errs = append(errs, err)
				continue
			}
			written[volume] = mark
		}
	}
	return errors.Join(errs...)
}

func (a *Archive) put(ctx context.Context, volume uint64, decisions []eviction.Decision) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	content, err := encode(decisions)
	if err != nil {
		return err
	}
	object := coreapply.ConfigMap(Name(volume), a.Namespace).
		WithLabels(map[string]string{"app.kubernetes.io/name": "caldera", "app.kubernetes.io/component": "ledger"}).
		WithBinaryData(map[string][]byte{key: content})
	if _, err := a.Client.CoreV1().ConfigMaps(a.Namespace).Apply(ctx, object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return fmt.Errorf("writing ConfigMap %s/%s: %w", a.Namespace, Name(volume), err)
	}
	return nil
}

var seed = maphash.MakeSeed()

// fingerprint is equal for equal decisions, as far as anything of them changes.
func fingerprint(decisions []eviction.Decision) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range decisions {
		d := &decisions[i]
		maphash.WriteComparable(&h, d.ID)
		maphash.WriteComparable(&h, d.Outcome)
		maphash.WriteComparable(&h, d.Problem)
		for _, v := range d.Victims {
			maphash.WriteComparable(&h, v.State)
			maphash.WriteComparable(&h, v.Evicted)
			maphash.WriteComparable(&h, v.Problem)
			maphash.WriteComparable(&h, v.Deadline.UnixNano())
		}
	}
	// No fingerprint is that of nothing written.
	return max(1, h.Sum64())
}
