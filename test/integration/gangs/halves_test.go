// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestAHalfGangGivesBackWhatItHolds: the API server binds one member of a gang, and refuses to bind the other. The scheduler is restarted
// meanwhile, and another gang waits for the room. Once the first gang is released, the other starts; when its members can be bound, and
// have been created anew, it starts as well.
func TestAHalfGangGivesBackWhatItHolds(t *testing.T) {
	const timeout = 5 * time.Second
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=2,memory=4Gi"}})
	denyBindings(t, e, env.Namespace, "half-1", `object.metadata.name != "half-1"`)
	quick := env.Queues(func(args *config.BatchQueueArgs) { args.HalfTimeout.Duration = timeout })
	stop := e.StartSchedulerWith(t, "", quick)
	half := env.Gang{Name: "half", Min: 2, Size: 2, CPU: "1"}
	e.Create(t, half)
	env.Eventually(t, soon, e.AllBound(t, half.Name, 1))
	stop()
	began := time.Now()
	e.StartSchedulerWith(t, "", quick)
	others := env.Gang{Name: "others", Min: 2, Size: 2, CPU: "1"}
	e.Create(t, others)
	env.Eventually(t, timeout+30*time.Second, e.AllBound(t, others.Name, 2))
	if waited := time.Since(began); waited < timeout {
		t.Errorf("it was released after %s, before %s", waited, timeout)
	}
	env.Eventually(t, soon, func() string {
		if members := e.Members(t, half.Name); len(members) != 1 || members[0].Name != "half-1" {
			return fmt.Sprintf("%d members of gang %s are there, want half-1 only", len(members), half.Name)
		}
		return ""
	})
	env.Eventually(t, soon, func() string {
		list, err := e.Kube.CoreV1().Events(env.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=half,reason=GangReleased"})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range list.Items {
			if strings.Contains(event.Message, "was never whole: 1 of 2 members have nodes") {
				return ""
			}
		}
		return fmt.Sprintf("%d events tell that the gang was released, none why", len(list.Items))
	})

	allowBindings(t, e, env.Namespace)
	e.Delete(t, others.Name)
	e.CreatePods(t, half.Member(0))
	env.Eventually(t, 30*time.Second, e.AllBound(t, half.Name, 2))
}
