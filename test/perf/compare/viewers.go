// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// viewerCount is how many ask for views at a time. The scheduler answers four of them at once.
const viewerCount = 8

// viewers ask a scheduler for views.
type viewers struct {
	stop context.CancelFunc
	all  sync.WaitGroup
	// answers are those with a list of queues. Others are of a scheduler that does not lead yet.
	answers atomic.Int64
}

// portOfViews is the port on which a program is told to serve views; empty if it is not.
func portOfViews(args []string) string {
	for _, arg := range args {
		if port, ok := strings.CutPrefix(arg, "--visibility-port="); ok {
			return port
		}
	}
	return ""
}

// askForViews asks a scheduler for its queues so many times a second, with the rights of a configuration; 0: never.
func askForViews(ctx context.Context, config *rest.Config, port string, perSecond int) (*viewers, error) {
	to := rest.CopyConfig(config)
	to.TLSClientConfig.Insecure, to.CAData, to.CAFile = true, nil, "" // the scheduler has made its certificate itself, on this machine
	client, err := rest.HTTPClientFor(to)
	if err != nil {
		return nil, fmt.Errorf("making a client for views: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	v := &viewers{stop: stop}
	if perSecond == 0 {
		return v, nil
	}
	limiter := flowcontrol.NewTokenBucketRateLimiter(float32(perSecond), 1)
	url := "https://127.0.0.1:" + port + "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/" + v1alpha1.QueueViews
	for range viewerCount {
		v.all.Go(func() {
			for limiter.Wait(ctx) == nil {
				if ask(ctx, client, url) {
					v.answers.Add(1)
				}
			}
		})
	}
	return v, nil
}

// ask reports whether views were answered.
func ask(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	n, err := io.Copy(io.Discard, response.Body)
	return err == nil && n > 0 && response.StatusCode == http.StatusOK
}

// end ends them, and returns how many answers they had.
func (v *viewers) end() int {
	v.stop()
	v.all.Wait()
	return int(v.answers.Load())
}

// withPort gives each run of a contender that is asked for views a port of its own.
func withPort(args []string, free func() (int, error)) ([]string, error) {
	for i, arg := range args {
		if strings.Contains(arg, "{port}") {
			port, err := free()
			if err != nil {
				return nil, err
			}
			args[i] = strings.ReplaceAll(arg, "{port}", strconv.Itoa(port))
		}
	}
	return args, nil
}
