// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
)

func TestFragmentationArgs(t *testing.T) {
	with := func(change func(*config.FragmentationArgs)) config.FragmentationArgs {
		args := config.FragmentationArgs{
			Resource: "example.com/gpu", ModelLabel: "model", HalfLife: metav1.Duration{Duration: time.Minute}, Cards: &config.DeviceShareArgs{Mode: config.DeviceVGPU},
		}
		change(&args)
		return args
	}
	for name, tc := range map[string]struct {
		args config.FragmentationArgs
		want []string
	}{
		"all given": {with(func(*config.FragmentationArgs) {}), nil},
		"no cards":  {with(func(a *config.FragmentationArgs) { a.Cards = nil }), nil},
		"names that are none": {
			with(func(a *config.FragmentationArgs) { a.Resource, a.ModelLabel = "gpu!", "a/b/c" }),
			[]string{`args.resource: Invalid value: "gpu!"`, `args.modelLabel: Invalid value: "a/b/c"`},
		},
		"seconds": {
			with(func(a *config.FragmentationArgs) { a.HalfLife.Duration = time.Second }), []string{`args.halfLife: Invalid value: "1s": must be at least 1m0s`},
		},
		"cards without a mode, and no time": {
			with(func(a *config.FragmentationArgs) { a.Cards.Mode, a.HalfLife.Duration = "", 0 }),
			[]string{`args.halfLife: Invalid value: "0s"`, "args.cards.mode: Required value"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := validation.ValidateFragmentationArgs(field.NewPath("args"), &tc.args)
			if (err == nil) != (tc.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("got %v\nwant %s in it", err, want)
				}
			}
		})
	}
}
