// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestWhatIsReservedIsReadAsItWasWritten: to the nanosecond, since a bound is one.
func TestWhatIsReservedIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 15, 4, 5, 123456789, time.FixedZone("", 3600))
	for name, r := range map[string]model.Reservation{
		"a bound": {
			Job: "ns/train", UID: "6f1b", Since: at, Start: at.Add(time.Hour), Bound: true, First: at.Add(2 * time.Hour),
			Pods: map[string][]types.UID{"node-1": {"b", "a"}}, InTheWay: []types.UID{"d", "c"},
		},
		"no bound, and nobody in the way": {Job: "ns/train", UID: "6f1b", Since: at, Start: at.Add(time.Hour), Pods: map[string][]types.UID{"node-1": {"a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value, err := r.Concise().Annotation()
			if err != nil {
				t.Fatal(err)
			}
			got, err := model.ReservationOf(map[string]string{model.ReservationAnnotation: value})
			if err != nil || !got.Same(r.Concise()) || strings.Contains(value, "first") == r.First.IsZero() {
				t.Errorf("read is %v, %v, of %s", got, err, value)
			}
			later := r
			later.Start = r.Start.Add(1)
			if later.Concise().Same(got) || got.Same(nil) || (*model.Reservation)(nil).Same(got) {
				t.Error("another one is the same")
			}
		})
	}
}

// TestAnAnnotationHasRoomForWhatIsReserved: a gang of so many pods that they do not fit is written down without them.
func TestAnAnnotationHasRoomForWhatIsReserved(t *testing.T) {
	t.Parallel()
	for pods, whole := range map[int]bool{1000: true, 10_000: false} {
		r := model.Reservation{Job: "ns/train", UID: "6f1b", Since: time.Unix(0, 0), Pods: map[string][]types.UID{}}
		for i := range pods {
			node, uid := fmt.Sprintf("ip-10-%03d-%03d.eu-central-1.compute.internal", i/256, i%256), types.UID(fmt.Sprintf("6f1bc2b1-4a3c-4a59-8d8f-%012d", i))
			r.Pods[node] = append(r.Pods[node], uid)
			r.InTheWay = append(r.InTheWay, uid)
		}
		value, err := r.Concise().Annotation()
		if err != nil {
			t.Fatal(err)
		}
		// All annotations of an object together may have 256 KiB.
		if strings.Contains(value, "compute.internal") != whole || len(value) > 250<<10 {
			t.Errorf("of %d pods %d bytes are written, want pods in it: %t", pods, len(value), whole)
		}
	}
}

func TestWhatNobodyWroteIsNotReserved(t *testing.T) {
	t.Parallel()
	if r, err := model.ReservationOf(nil); r != nil || err != nil {
		t.Errorf("without an annotation there is %v, %v", r, err)
	}
	for _, value := range []string{"", "soon", "{}", `{"uid": "u"}`, `{"uid": "u", "since": "soon"}`, `[]`} {
		r, err := model.ReservationOf(map[string]string{model.ReservationAnnotation: value})
		if r != nil || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("annotation caldera.dev/reservation is %q", value)) {
			t.Errorf("%q is read as %v, %v", value, r, err)
		}
	}
}
