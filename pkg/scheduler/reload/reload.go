// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
)

// lookEvery is how often the file is read. A file of a ConfigMap is a link to one in a directory that is a link itself; reading
// sees what every way of replacing it amounts to.
const lookEvery = 500 * time.Millisecond

// Reloader follows the file of a scheduler's configuration.
type Reloader struct {
	PluginCache *PluginCache
	Core        *core.Core
	// Profiles are those of the scheduler by name.
	Profiles map[string]*ReloadableFramework
	// File is the path of the file, and Content what it had in it when the scheduler was built.
	File    string
	Content []byte
	// Translate makes a configuration of what is in the file. An error tells all that is wrong.
	Translate func([]byte) (*schedulerconfig.KubeSchedulerConfiguration, error)

	// Applied, if not nil, is told of each configuration that comes into force.
	Applied func(*schedulerconfig.KubeSchedulerConfiguration)

	// failed is the last error of reading the file; empty when it could be read.
	failed string
	// refused: what was last read of it is not in force.
	refused bool
}

// Run applies changes of the file until the context ends. What is wrong with a file is told by a log line, an event and a
// metric, and the configuration from before stays in force.
func (r *Reloader) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch content, news, err := r.look(); {
		case err != nil:
			r.tell(ctx, err)
		case news:
			err = r.apply(ctx, content)
			r.refused = err != nil
			r.tell(ctx, err)
		}
		metrics.ConfigurationRefused(r.refused || r.failed != "")
	}
}

// look reads the file, and reports whether there is something new in it. An error is returned when it is news.
func (r *Reloader) look() (content []byte, news bool, err error) {
	content, err = os.ReadFile(r.File)
	if err != nil {
		if r.failed == err.Error() {
			return nil, false, nil
		}
		r.failed = err.Error()
		return nil, false, err
	}
	news = !bytes.Equal(content, r.Content)
	r.failed, r.Content = "", content
	return content, news, nil
}

// apply brings a configuration into force.
func (r *Reloader) apply(ctx context.Context, content []byte) error {
	c, err := r.Translate(content)
	if err != nil {
		return err
	}
	args, err := argsOf(c)
	if err != nil {
		return err
	}
	assembly, err := r.PluginCache.Assemble(ctx, c.Profiles, r.Profiles, c.Parallelism)
	if err != nil {
		return err
	}
	if err := r.adopt(ctx, args, assembly); err != nil {
		assembly.Discard()
		return err
	}
	assembly.Use()
	if r.Applied != nil {
		r.Applied(c)
	}
	return nil
}

func (r *Reloader) adopt(ctx context.Context, args *config.BatchQueueArgs, assembly *Assembly) error {
	var profile *ReloadableFramework
	for name := range assembly.Frameworks {
		profile = r.Profiles[name]
	}
	// Plugins that were not there before may look at objects that nobody looked at.
	informers := profile.SharedInformerFactory()
	informers.StartWithContext(ctx)
	waiting, stop := context.WithTimeout(ctx, core.ReadWithin)
	defer stop()
	for kind, read := range informers.WaitForCacheSync(waiting.Done()) {
		if !read {
			return fmt.Errorf("objects of the type %v, which a plugin needs, were not read within %s: the log tells why", kind, core.ReadWithin)
		}
	}
	rules, err := r.Core.Prepare(ctx, profile, args, assembly.Plugins())
	if err != nil {
		return err
	}
	return r.Core.Adopt(ctx, rules, func() {
		for name, f := range assembly.Frameworks {
			r.Profiles[name].To(f)
		}
	})
}

// argsOf are the arguments of BatchQueue, which are the same for all profiles that have it.
func argsOf(c *schedulerconfig.KubeSchedulerConfiguration) (*config.BatchQueueArgs, error) {
	for i := range c.Profiles {
		for _, given := range c.Profiles[i].PluginConfig {
			if args, ok := given.Args.(*config.BatchQueueArgs); ok && given.Name == names.BatchQueue {
				return args, nil
			}
		}
	}
	return nil, errors.New("no profile has the plugin " + names.BatchQueue)
}

// tell says what became of a change.
func (r *Reloader) tell(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	logger := klog.FromContext(ctx)
	metrics.Reloaded(err == nil)
	r.Core.Writer.Reloaded(r.Core.State.Queue, err)
	if err != nil {
		logger.Error(err, "Configuration refused; the one from before stays in force", "file", r.File)
		return
	}
	logger.Info("Configuration applied", "file", r.File)
}
