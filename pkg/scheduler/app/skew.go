// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/version"
)

const (
	// emulatedFlag is upstream's flag that names the minor version to act as.
	emulatedFlag = "emulated-version"
	// firstAnswer is how long the start waits for the API server to say its version. Without an answer it goes on: the API server may take longer, and
	// nothing is scheduled without it anyway.
	firstAnswer = 15 * time.Second
	// answerTimeout bounds one request. askAgain is the time between two of the start, askLater that between two after it.
	answerTimeout = 5 * time.Second
	askAgain      = time.Second
	askLater      = 10 * time.Second
)

// skew is the difference between this scheduler's version and the API server's. Kubernetes supports no scheduler that is newer: it waits for ever for objects
// that the server does not have. So this one acts as the server's version, by what upstream has for that (KEP-4330).
type skew struct {
	// given: --emulated-version says as what to act, and the server is not asked.
	given bool
	// server asks for its version; nil if it is not known how to reach it.
	server discovery.ServerVersionInterface
	// acts is the minor version to act as; nil if the server has not answered.
	acts *utilversion.Version
	// unknown is why the server has not answered.
	unknown error
}

// ActsAs asks an API server for its version, and returns the minor version as which a scheduler acts beside it.
func ActsAs(server discovery.ServerVersionInterface) (*utilversion.Version, error) {
	info, err := server.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking the API server for its version: %w", err)
	}
	v, err := version.OfServer(info)
	if err != nil {
		return nil, err
	}
	acts, err := version.Beside(version.Kubernetes(), v)
	if err != nil {
		return nil, errTooOld{err}
	}
	return acts, nil
}

// errTooOld says that an API server is too old. To ask again is of no use.
type errTooOld struct{ error }

// find asks the API server that options name for its version, and sets the feature gates anew where it is older.
func (s *skew) find(ctx context.Context, flags *pflag.FlagSet, opts *options.Options) error {
	if s.given = flags.Changed(emulatedFlag); s.given {
		return nil
	}
	config, err := connection(opts)
	if err == nil {
		s.server, err = discovery.NewDiscoveryClientForConfig(config)
	}
	if err != nil {
		// Upstream's set-up says the same, and more.
		s.server, s.unknown = nil, err
		return nil
	}
	if err := s.ask(ctx, askAgain, firstAnswer); err != nil || s.acts == nil || s.acts.EqualTo(version.Kubernetes()) {
		return err
	}
	err = flags.Set(emulatedFlag, s.acts.String())
	if err == nil {
		err = opts.ComponentGlobalsRegistry.Set()
	}
	if err != nil {
		return fmt.Errorf("acting as Kubernetes %s, which the API server is: %w", s.acts, err)
	}
	return nil
}

// ask asks until the server answers, or the time is over. An error says that it is too old.
func (s *skew) ask(ctx context.Context, every, patience time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, every, patience, true, func(context.Context) (bool, error) {
		s.acts, s.unknown = ActsAs(s.server)
		if tooOld := (errTooOld{}); errors.As(s.unknown, &tooOld) {
			return false, tooOld
		}
		return s.unknown == nil || s.refused(), nil
	})
	if wait.Interrupted(err) {
		return nil
	}
	return err
}

// refused reports whether the server has answered that it does not tell its version to this user.
func (s *skew) refused() bool {
	return apierrors.IsForbidden(s.unknown) || apierrors.IsUnauthorized(s.unknown)
}

// watch says as what the scheduler acts. If that is not known yet it goes on asking, and ends the scheduler when it learns that it should act as another
// version: whoever keeps it running starts it again, and then it will know.
func (s *skew) watch(ctx context.Context, end context.CancelCauseFunc) {
	logger := klog.FromContext(ctx)
	if s.acts != nil && !s.acts.EqualTo(version.Kubernetes()) {
		logger.Info("Acting as the Kubernetes of the API server, which is older", "version", s.acts, "binary", version.Kubernetes())
	}
	if s.given || s.acts != nil {
		return
	}
	logger.Info("The API server has not said its version; going on as if it were this one", "version", version.Kubernetes(), "err", s.unknown)
	if s.server == nil || s.refused() {
		return
	}
	go func() {
		for s.acts == nil && !s.refused() && ctx.Err() == nil {
			if err := s.ask(ctx, askLater, time.Hour); err != nil {
				logger.Error(err, "The scheduler cannot run beside this API server")
				end(err)
				return
			}
		}
		if s.acts != nil && !s.acts.EqualTo(version.Kubernetes()) {
			err := fmt.Errorf("the API server is Kubernetes %s, which was not known at the start: the scheduler has to start again, to act as that", s.acts)
			logger.Error(err, "The scheduler ends")
			end(err)
		}
	}()
}

// connection is how the API server is reached, as upstream's set-up finds out: by the configuration, or by flags if there is none.
func connection(opts *options.Options) (*rest.Config, error) {
	kubeconfig := opts.Deprecated.Kubeconfig
	if opts.ConfigFile != "" {
		// Upstream's set-up reads it, too. A pipe can be read once.
		if info, err := os.Stat(opts.ConfigFile); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("--config %s is no regular file, and is left to be read later: say --%s where the API server is older", opts.ConfigFile, emulatedFlag)
		}
		data, err := os.ReadFile(opts.ConfigFile)
		if err != nil {
			return nil, fmt.Errorf("reading --config: %w", err)
		}
		var c struct {
			ClientConnection struct {
				Kubeconfig string `json:"kubeconfig"`
			} `json:"clientConnection"`
		}
		if err := yaml.Unmarshal(data, &c); err != nil {
			return nil, fmt.Errorf("reading --config: %w", err)
		}
		kubeconfig = c.ClientConnection.Kubeconfig
	}
	config, err := clientcmd.BuildConfigFromFlags(opts.Master, kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	config.Timeout = answerTimeout
	return config, nil
}
