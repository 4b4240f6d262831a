// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package extender_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caldera-scheduler/caldera/internal/testing/placing"
)

// question is what the tests read of a question.
type question struct {
	Task  struct{ Name string }
	Node  struct{ Name string }
	Nodes []struct{ Name string }
}

// handler is an extender that behaves as the first part of the path says: "small" refuses the node small by its verdict,
// with the code that the second part is; scores are 250 for large and -3 for the others.
func handler(w http.ResponseWriter, r *http.Request) {
	var asked question
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	answer := map[string]any{}
	switch path[0] {
	case "code":
		if asked.Node.Name == "small" {
			answer["status"] = "no license"
		}
		answer["code"] = json.Number(path[1])
	case "scores":
		byName := map[string]float64{}
		for _, n := range asked.Nodes {
			byName[n.Name] = -3
			if n.Name == "large" {
				byName[n.Name] = 250
			}
		}
		answer["nodeScore"] = byName
	case "message":
		answer["nodeScore"], answer["errorMessage"] = map[string]float64{"large": 1}, "out of order"
	case "empty":
	case "broken":
		http.Error(w, "the extender is broken", http.StatusInternalServerError)
		return
	case "garbage":
		_, _ = io.WriteString(w, "<html>")
		return
	case "huge":
		_, _ = io.WriteString(w, `{"status": "`)
		for range 20 {
			_, _ = w.Write(bytes.Repeat([]byte("a"), 1<<20))
		}
		return
	case "slow":
		<-r.Context().Done()
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func TestNodes(t *testing.T) {
	server, down := httptest.NewServer(http.HandlerFunc(handler)), httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	down.Close()
	placing.Walk(t, "nodes",
		placing.Word{Name: "http://SERVER", Meaning: server.URL}, placing.Word{Name: "http://DOWN", Meaning: down.URL},
		placing.Word{Name: "ADDRESS-DOWN", Meaning: strings.TrimPrefix(down.URL, "http://")})
}
