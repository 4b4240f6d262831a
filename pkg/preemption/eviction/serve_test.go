// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/configz"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// served is the ledger as the scheduler's port shows it.
func served(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	configz.InstallHandler(mux)
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, eviction.Endpoint, http.NoBody))
	var entries map[string]json.RawMessage
	check(t, json.Unmarshal(answer.Body.Bytes(), &entries))
	var text bytes.Buffer
	check(t, json.Indent(&text, entries[eviction.Entry], "", "  "))
	return text.String()
}

// The schema is a promise: this document only grows.
func TestTheLedgerIsServedAsItIs(t *testing.T) {
	ledger := eviction.NewLedger(10, time.Minute)
	check(t, ledger.Serve())
	const empty = `{
  "apiVersion": "evictions.caldera/v1",
  "kind": "EvictionLedger",
  "decisions": [],
  "totals": {
    "decisions": 0,
    "evicted": 0,
    "wasted": 0,
    "cycles": 0,
    "requestedResources": {},
    "evictedResources": {}
  }
}`
	if diff := cmp.Diff(empty, served(t)); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}

	list := append(victims("a-0", "a"), victims("c-0", "c")...)
	list[1].Job, list[1].Budgeted = model.JobKey{Source: model.FromPod, Namespace: "team", Name: "c-0"}, true
	d := ledger.Begin(golden.Begin.Add(1500*time.Millisecond), eviction.Decision{
		Action: eviction.Reclaim, Beneficiary: job("x"), Queue: "b", Victims: list,
		Members: []eviction.Member{{
			UID: "x-0", Namespace: "team", Name: "x-0", Node: "n1",
			Request: resource.Vector{{Name: "cpu", Value: 1500}, {Name: "memory", Value: 1 << 30}, {Name: "pods", Value: 1}},
		}},
		Kept: []eviction.Kept{{Reason: "higher priority", Pods: 3}},
	})
	ledger.Sent(d.ID, "c-0")
	ledger.Leaving("c-0", golden.Begin.Add(time.Minute))
	ledger.Sent(d.ID, "a-0")
	ledger.Refused("a-0", "no", golden.Begin)
	ledger.Cancel(job("x"), golden.Begin.Add(time.Hour))
	const full = `{
  "apiVersion": "evictions.caldera/v1",
  "kind": "EvictionLedger",
  "decisions": [
    {
      "id": 1,
      "time": "2026-01-01T00:00:01Z",
      "action": "reclaim",
      "job": {
        "kind": "PodGroup",
        "namespace": "team",
        "name": "x",
        "queue": "b"
      },
      "members": [
        {
          "namespace": "team",
          "name": "x-0",
          "uid": "x-0",
          "node": "n1",
          "request": {
            "cpu": "1500m",
            "memory": "1Gi",
            "pods": "1"
          }
        }
      ],
      "victims": [
        {
          "namespace": "team",
          "name": "a-0",
          "uid": "a-0",
          "node": "n1",
          "request": {
            "cpu": "1"
          },
          "job": {
            "kind": "PodGroup",
            "namespace": "team",
            "name": "a",
            "queue": "a"
          },
          "rule": "lower priority",
          "state": "Refused",
          "evicted": false,
          "problem": "no"
        },
        {
          "namespace": "team",
          "name": "c-0",
          "uid": "c-0",
          "node": "n1",
          "request": {
            "cpu": "1"
          },
          "job": {
            "kind": "Pod",
            "namespace": "team",
            "name": "c-0",
            "queue": "c"
          },
          "rule": "lower priority",
          "budgeted": true,
          "state": "Leaving",
          "evicted": true,
          "deadline": "2026-01-01T00:01:00Z"
        }
      ],
      "kept": [
        {
          "reason": "higher priority",
          "pods": 3
        }
      ],
      "outcome": "Wasted",
      "ended": "2026-01-01T01:00:00Z",
      "problem": "evicting pod team/a-0 was refused: no"
    }
  ],
  "totals": {
    "decisions": 1,
    "evicted": 1,
    "wasted": 1,
    "cycles": 0,
    "requestedResources": {
      "cpu": "1500m",
      "memory": "1Gi",
      "pods": "1"
    },
    "evictedResources": {
      "cpu": "1"
    }
  }
}`
	if diff := cmp.Diff(full, served(t)); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}

func TestALedgerTakesThePlaceOfTheOneBefore(t *testing.T) {
	check(t, eviction.NewLedger(10, time.Minute).Serve())
	ledger := eviction.NewLedger(10, time.Minute)
	check(t, ledger.Serve())
	ledger.Begin(golden.Begin, eviction.Decision{Action: eviction.Preempt, Beneficiary: job("x")})
	var doc eviction.Document
	check(t, json.Unmarshal([]byte(served(t)), &doc))
	if len(doc.Decisions) != 1 || doc.Decisions[0].Job.Name != "x" || doc.Decisions[0].Members == nil || doc.Decisions[0].Victims == nil {
		t.Errorf("the document is %+v", doc)
	}
}
