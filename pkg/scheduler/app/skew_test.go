// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/caldera-scheduler/caldera/pkg/version"
)

// asked answers with a version from some time on.
type asked struct {
	version string
	from    time.Time
	// refuses: it tells nobody.
	refuses bool
	times   int
}

// ServerVersion implements discovery.ServerVersionInterface.
func (s *asked) ServerVersion() (*apimachineryversion.Info, error) {
	s.times++
	if s.refuses {
		return nil, apierrors.NewForbidden(schema.GroupResource{}, "/version", errors.New("no"))
	}
	if time.Now().Before(s.from) {
		return nil, errors.New("connection refused")
	}
	return &apimachineryversion.Info{GitVersion: s.version}, nil
}

// minor is a version of Kubernetes so many minor versions before ours.
func minor(before uint) string {
	return "v" + version.Kubernetes().SubtractMinor(before).String() + ".3"
}

func TestTheServerIsAskedUntilItAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		server asked
		after  time.Duration
		acts   string
		// asked is how often, if it answers.
		asked int
		err   string
	}{
		"at once":      {server: asked{version: minor(1)}, acts: version.Kubernetes().SubtractMinor(1).String(), asked: 1},
		"later":        {server: asked{version: minor(0)}, after: 2500 * time.Millisecond, acts: version.Kubernetes().String(), asked: 4},
		"much later":   {server: asked{version: minor(1)}, after: time.Minute},
		"too old":      {server: asked{version: minor(4)}, asked: 1, err: "upgrade the cluster first"},
		"not readable": {server: asked{version: "main"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.server.from = time.Now().Add(tc.after)
				s := skew{server: &tc.server}
				err := s.ask(t.Context(), askAgain, firstAnswer)
				if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) || tc.err == "" && err != nil {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				if got := fmt.Sprint(s.acts); tc.acts != "" && got != tc.acts || tc.acts == "" && (s.acts != nil || s.unknown == nil) {
					t.Errorf("it acts as %s (unknown: %v), want %q", got, s.unknown, tc.acts)
				}
				if tc.asked > 0 && tc.server.times != tc.asked {
					t.Errorf("the server was asked %d times, want %d", tc.server.times, tc.asked)
				}
			})
		})
	}
}

// TestAServerThatAnswersLate: the scheduler ends if it should act as another version, so that it is started again, and goes on if it need not.
func TestAServerThatAnswersLate(t *testing.T) {
	for name, tc := range map[string]struct {
		server asked
		given  bool
		ends   string
		asked  int
	}{
		"ours":         {server: asked{version: minor(0)}, asked: 2},
		"older":        {server: asked{version: minor(2)}, ends: "which was not known at the start: the scheduler has to start again", asked: 2},
		"too old":      {server: asked{version: minor(4)}, ends: "upgrade the cluster first", asked: 2},
		"never":        {server: asked{refuses: true}, asked: 1},
		"it was given": {server: asked{version: minor(2)}, given: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.server.from = time.Now().Add(2500 * time.Millisecond)
				ctx, end := context.WithCancelCause(t.Context())
				defer end(nil)
				s := skew{given: tc.given, server: &tc.server, unknown: errors.New("connection refused")}
				s.watch(ctx, end)
				time.Sleep(time.Minute)
				synctest.Wait()
				switch cause := context.Cause(ctx); {
				case tc.ends == "" && cause != nil, tc.ends != "" && (cause == nil || !strings.Contains(cause.Error(), tc.ends)):
					t.Errorf("it ended: %v, want %q", cause, tc.ends)
				}
				if tc.server.times != tc.asked {
					t.Errorf("the server was asked %d times, want %d", tc.server.times, tc.asked)
				}
			})
		})
	}
}

// TestASchedulerThatEndsAsksNoMore: it may end before the server answers.
func TestASchedulerThatEndsAsksNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(t.Context())
		never := &asked{from: time.Now().Add(24 * time.Hour)}
		(&skew{server: never}).watch(ctx, end)
		time.Sleep(time.Minute)
		end(nil)
		synctest.Wait()
		asked := never.times
		if time.Sleep(time.Minute); never.times != asked || asked == 0 {
			t.Errorf("the server was asked %d times before the end and %d times after it", asked, never.times-asked)
		}
	})
}

// TestHowTheServerIsFound: as upstream finds it, by flags or by the configuration.
func TestHowTheServerIsFound(t *testing.T) {
	older := version.Kubernetes().SubtractMinor(1).String()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := fmt.Fprintf(w, `{"gitVersion": %q}`, "v"+older+".1"); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(api.Close)
	write := func(name, text string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	kubeconfig := write("kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k}}], clusters: [{name: k, cluster: {server: %q}}]}`, api.URL))
	nowhere := write("nowhere", "apiVersion: v1\nkind: Config\n")
	config := func(kubeconfig string) string {
		return write("config.yaml", fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: %q}\n", kubeconfig))
	}
	for name, tc := range map[string]struct {
		flags   []string
		want    string
		unknown string
	}{
		"by --kubeconfig":                {flags: []string{"--kubeconfig", kubeconfig}, want: older},
		"by --master":                    {flags: []string{"--master", api.URL}, want: older},
		"by the configuration":           {flags: []string{"--config", config(kubeconfig)}, want: older},
		"the configuration goes":         {flags: []string{"--config", config(kubeconfig), "--kubeconfig", nowhere}, want: older},
		"no server is known":             {flags: []string{"--kubeconfig", nowhere}, unknown: "finding the API server"},
		"there is no configuration":      {flags: []string{"--config", "/nowhere/config.yaml"}, unknown: "reading --config"},
		"the configuration is none":      {flags: []string{"--config", write("text", "a: [")}, unknown: "reading --config"},
		"the configuration is read once": {flags: []string{"--config", os.DevNull}, unknown: "is no regular file"},
		"it is said":                     {flags: []string{"--master", api.URL, "--" + emulatedFlag, "1.34"}, want: "1.34"},
	} {
		t.Run(name, func(t *testing.T) {
			registry := basecompatibility.NewComponentGlobalsRegistry()
			effective := compatibility.DefaultBuildEffectiveVersion()
			gates := featuregate.NewVersionedFeatureGate(effective.BinaryVersion())
			if err := registry.Register(basecompatibility.DefaultKubeComponent, effective, gates); err != nil {
				t.Fatal(err)
			}
			opts := options.NewOptionsWithComponentGlobalsRegistry(registry)
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			for _, set := range opts.Flags.FlagSets {
				flags.AddFlagSet(set)
			}
			if err := flags.Parse(tc.flags); err != nil {
				t.Fatal(err)
			}
			var s skew
			if err := s.find(t.Context(), flags, opts); err != nil {
				t.Fatal(err)
			}
			if got := flags.Lookup(emulatedFlag).Value.String(); got != "["+tc.want+"]" {
				t.Errorf("it acts as %s (unknown: %v), want %s", got, s.unknown, tc.want)
			}
			if got := effective.EmulationVersion().String(); tc.want == older && got != older {
				t.Errorf("gates are those of %s, want %s", got, older)
			}
			if tc.unknown != "" && (s.unknown == nil || !strings.Contains(s.unknown.Error(), tc.unknown)) {
				t.Errorf("it is unknown because of %v, want %q", s.unknown, tc.unknown)
			}
		})
	}
}
