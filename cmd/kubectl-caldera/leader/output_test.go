// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

func TestAListIsWrittenAsItIsWanted(t *testing.T) {
	list := &v1alpha1.JobViewList{Items: []v1alpha1.JobView{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "pod:a"}},
	}}
	for format, want := range map[string]string{
		"name":                               "jobview.visibility.caldera.dev/train\njobview.visibility.caldera.dev/pod:a\n",
		"jsonpath={.items[*].metadata.name}": "train pod:a",
		"wide":                               "a table\n",
		"":                                   "a table\n",
	} {
		output, cmd := NewOutput(), &cobra.Command{}
		output.Add(cmd, "is the same")
		if err := cmd.ParseFlags([]string{"--output=" + format}); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := output.Write(&out, list, func(out io.Writer) error {
			_, err := io.WriteString(out, "a table\n")
			return err
		})
		if err != nil || out.String() != want {
			t.Errorf("-o %q writes %q, %v; want %q", format, out.String(), err, want)
		}
	}
}

func TestAnUnknownFormatIsRefused(t *testing.T) {
	output, cmd := NewOutput(), &cobra.Command{}
	output.Add(cmd, "is the same")
	if err := cmd.ParseFlags([]string{"--output=josn"}); err != nil {
		t.Fatal(err)
	}
	err := output.Write(io.Discard, &v1alpha1.JobView{}, func(io.Writer) error { return errors.New("a table is not wanted") })
	if err == nil || !strings.Contains(err.Error(), "josn") {
		t.Errorf("-o josn is answered by %v", err)
	}
}
