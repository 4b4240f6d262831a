// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
)

//go:embed static
var static embed.FS

// source is where the page has its data from.
type source struct {
	flags  *leader.Flags
	client *leader.Client
	core   kubernetes.Interface
}

const (
	// patience is how long one answer may take. A page says early that no scheduler leads, and asks again.
	patience = 15 * time.Second
	// longPatience is that of a question whose answer is planned: all objects of the cluster are read for it.
	longPatience = 2 * time.Minute
)

// errBusy: two searches at a time would take the cores of this machine, and neither would come to its end.
var errBusy = errors.New("it is being found out what would have another job start: ask again when that is known")

// question is what the page may ask, with its parameters. The answer is written as JSON.
type question func(ctx context.Context, parameters url.Values) (any, error)

// newPages serves the files of the page, and below api/ what they show.
func newPages(s *source) http.Handler {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // The folder is in the program.
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(files))
	for path, q := range map[string]question{
		"cluster": s.cluster, "queues": s.queues, "jobs": s.jobs, "job": s.job, "evictions": s.evictions, "nodes": s.nodes, "history": s.history,
	} {
		mux.HandleFunc("/api/"+path, answer(q, patience))
	}
	mux.HandleFunc("/api/whatif", answer(oneAtATime(s.whatIf), longPatience))
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusNotFound, problem{"error: there is no such answer"})
	})
	return mux
}

// problem is the answer when there is none, in kubectl's words.
type problem struct {
	Error string `json:"error"`
}

// answer answers a question within a time.
func answer(q question, within time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeoutCause(r.Context(), within, errors.New("no scheduler that leads has answered"))
		defer cancel()
		// A browser that asks no longer is no news.
		ctx = klog.NewContext(ctx, logr.Discard())
		data, err := q(ctx, r.URL.Query())
		if err != nil {
			write(w, code(err), problem{leader.Message(err)})
			return
		}
		write(w, http.StatusOK, data)
	}
}

// code is the status of an answer: that of the API server if it refused something.
func code(err error) int {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, errBusy):
		return http.StatusTooManyRequests
	case errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest:
		return int(status.Status().Code)
	}
	return http.StatusBadGateway
}

func write(w http.ResponseWriter, code int, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text) // Who has gone needs no answer.
}

// oneAtATime refuses a question while it is being answered.
func oneAtATime(q question) question {
	free := make(chan struct{}, 1)
	free <- struct{}{}
	return func(ctx context.Context, parameters url.Values) (any, error) {
		select {
		case <-free:
			defer func() { free <- struct{}{} }()
			return q(ctx, parameters)
		default:
			return nil, errBusy
		}
	}
}
