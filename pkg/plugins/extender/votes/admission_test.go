// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package votes_test

import (
	"strings"
	"testing"
)

const ignorable = "extender.ignorable: true"

// two is two jobs that are alike, in a cluster that has room for both.
var two = node("n", 4) + group("one", "default", "", "", 1) + group("two", "default", "", "", 1)

func TestJobsThatAskToBeLetIn(t *testing.T) {
	verb := []string{"jobEnqueueable"}
	answers := func(of func(question, int) string) map[string]func(question, int) string {
		return map[string]func(question, int) string{"jobEnqueueable": of}
	}
	for name, o := range map[string]outcome{
		"one is let in and another that is alike is not": {
			verbs: verb, answers: answers(func(q question, _ int) string {
				if q.Job.Name == "one" {
					return `{"status": -1}`
				}
				return `{"status": 1}`
			}),
			want: []string{"one-0 -", "two-0 n", `one: NotAdmitted: the extender at SERVER/jobEnqueueable does not let the job into queue "default"`},
		},
		"no opinion lets in": {verbs: verb, answers: answers(always("{}")), want: []string{"one-0 n", "two-0 n"}},
		"a job that is rejected asks again until it is let in": {
			verbs: verb, answers: answers(func(_ question, asked int) string {
				if asked < 4 {
					return `{"status": -1}`
				}
				return `{"status": 1}`
			}),
			want: []string{"one-0 n", "two-0 n"}, least: map[string]int{"jobEnqueueable one": 4, "jobEnqueueable two": 4},
		},
		"a failure rejects": {
			verbs: verb, answers: answers(func(q question, _ int) string {
				if q.Job.Name == "one" {
					return "500"
				}
				return "{}"
			}),
			want: []string{"one-0 -", "two-0 n", `one: Withheld: asking the extender at SERVER/jobEnqueueable: status 500 Internal Server Error where 200 is wanted, with the text "500"`},
		},
		"a failure of an extender that may fail does not": {
			verbs: verb, arguments: ignorable, answers: answers(always("500")), want: []string{"one-0 n", "two-0 n"},
		},
		"those that are let in are told": {
			verbs: []string{"jobEnqueued"}, answers: map[string]func(question, int) string{"jobEnqueued": always("500")},
			want: []string{"one-0 n", "two-0 n"}, least: map[string]int{"jobEnqueued one": 1, "jobEnqueued two": 1},
		},
	} {
		o.objects = two
		t.Run(name, o.run)
	}
}

func TestQueuesThatAreOverused(t *testing.T) {
	objects := queue("full") + node("n", 4) + group("one", "full", "", "", 1) + group("two", "default", "", "", 1)
	verb := []string{"queueOverused"}
	for name, o := range map[string]outcome{
		"a queue that is overused starts nothing": {
			verbs: verb, answers: map[string]func(question, int) string{"queueOverused": func(q question, _ int) string {
				if q.Queue.Name == "full" {
					return `{"overused": true}`
				}
				return `{"overused": false}`
			}},
			want: []string{"one-0 -", "two-0 n", `one: Withheld: the extender at SERVER/queueOverused says that queue "full" is overused`},
		},
		"it starts its jobs when it is not any more": {
			verbs: verb, answers: map[string]func(question, int) string{"queueOverused": func(_ question, asked int) string {
				if asked < 4 {
					return `{"overused": true}`
				}
				return `{}`
			}},
			want: []string{"one-0 n", "two-0 n"}, least: map[string]int{"queueOverused full": 4},
		},
		"a failure counts as overused": {
			verbs: verb, answers: map[string]func(question, int) string{"queueOverused": func(q question, _ int) string {
				if q.Queue.Name == "full" {
					return "500"
				}
				return "{}"
			}},
			want: []string{"one-0 -", "two-0 n", `one: Withheld: asking the extender at SERVER/queueOverused: status 500 Internal Server Error where 200 is wanted, with the text "500"`},
		},
		"a failure of an extender that may fail does not": {
			verbs: verb, arguments: ignorable, answers: map[string]func(question, int) string{"queueOverused": always("500")}, want: []string{"one-0 n", "two-0 n"},
		},
	} {
		o.objects = objects
		t.Run(name, o.run)
	}
}

func TestJobsThatAreReady(t *testing.T) {
	verb := []string{"jobReady"}
	ready := func(of func(question, int) string) map[string]func(question, int) string {
		return map[string]func(question, int) string{"jobReady": of}
	}
	for name, o := range map[string]outcome{
		"a job that is not ready does not start, and another that is alike does": {
			verbs: verb, answers: ready(func(q question, _ int) string {
				if q.Job.Name == "one" {
					return `{"status": false}`
				}
				return `{"status": true}`
			}),
			want: []string{"one-0 -", "two-0 n", "one: Withheld: the extender at SERVER/jobReady says that the job is not ready"},
		},
		"the extender sees the nodes that are planned": {
			verbs: verb, answers: ready(func(q question, _ int) string {
				for _, task := range q.Job.Tasks {
					if task.NodeName == "n" {
						return `{"status": true}`
					}
				}
				return `{"status": false}`
			}),
			want: []string{"one-0 n", "two-0 n"},
		},
		"it is asked again until it is ready": {
			verbs: verb, answers: ready(func(_ question, asked int) string {
				if asked < 3 {
					return `{"status": false}`
				}
				return `{"status": true}`
			}),
			want: []string{"one-0 n", "two-0 n"}, least: map[string]int{"jobReady one": 3, "jobReady two": 3},
		},
		"a failure is not ready": {
			verbs: verb, answers: ready(func(q question, _ int) string {
				if q.Job.Name == "one" {
					return "500"
				}
				return `{"status": true}`
			}),
			want: []string{"one-0 -", "two-0 n", `one: Withheld: asking the extender at SERVER/jobReady: status 500 Internal Server Error where 200 is wanted, with the text "500"`},
		},
		"a failure of an extender that may fail is ready": {verbs: verb, arguments: ignorable, answers: ready(always("500")), want: []string{"one-0 n", "two-0 n"}},
	} {
		o.objects = two
		t.Run(name, o.run)
	}
}

func TestSessions(t *testing.T) {
	failure := `asking the extender at SERVER/onSessionOpen: status 500 Internal Server Error where 200 is wanted, with the text "500"`
	for name, o := range map[string]outcome{
		"the extender is told of everything there is": {
			verbs: []string{"onSessionOpen", "onSessionClose"}, answers: map[string]func(question, int) string{"onSessionOpen": func(q question, _ int) string {
				if len(q.Jobs) != 3 || len(q.Jobs["default/one"].Tasks) != 1 || len(q.Nodes["n"].Tasks) == 0 || q.Queues["default"].Weight != 1 {
					return "500"
				}
				return ""
			}},
			want: []string{"before-0 n", "one-0 n", "two-0 n"}, least: map[string]int{"onSessionOpen": 1},
		},
		"nothing starts while no session can be opened": {
			verbs: []string{"onSessionOpen", "onSessionClose"}, answers: map[string]func(question, int) string{"onSessionOpen": always("500")},
			want: []string{"before-0 n", "one-0 -", "two-0 -", "one: Withheld: " + failure, "two: Withheld: " + failure}, least: map[string]int{"onSessionOpen": 1},
		},
		"it does when the extender may fail": {
			verbs: []string{"onSessionOpen"}, arguments: ignorable, answers: map[string]func(question, int) string{"onSessionOpen": always("500")},
			want: []string{"before-0 n", "one-0 n", "two-0 n"},
		},
	} {
		o.objects = two + group("before", "default", "", "n", 1)
		t.Run(name, o.run)
	}
}

func TestAGangOfWhichOneMemberIsRefused(t *testing.T) {
	gang := strings.Replace(group("gang", "default", "", "", 2), "minMember: 1", "minMember: 2", 1)
	o := outcome{
		verbs: []string{"allocateFunc", "deallocateFunc"}, objects: node("n", 4) + gang,
		answers: map[string]func(question, int) string{"allocateFunc": func(q question, _ int) string {
			if q.Task.Name == "gang-1" {
				return `{"errorMessage": "no license"}`
			}
			return "{}"
		}},
		least: map[string]int{"allocateFunc": 2},
	}
	for _, line := range o.play(t) {
		if strings.HasPrefix(line, "gang-") && !strings.HasSuffix(line, " -") {
			t.Errorf("a member was bound: %s", line)
		}
	}
}
