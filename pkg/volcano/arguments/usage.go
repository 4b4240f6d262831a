// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// Usage are the arguments of the plugin usage.
type Usage struct {
	// Weight is how much the score counts; at least 0, which turns it off.
	Weight int64
	// Args are all but the source of metrics, which is not among the arguments.
	Args config.UsageArgs
}

// DecodeUsage reads the arguments of the plugin usage; path is that of the plugin's entry. Volcano takes the default for what
// is out of range, and for thresholds that are not whole (pkg/scheduler/plugins/usage/usage.go); here the one is an error and
// the other is a threshold.
func DecodeUsage(p *config.TierPlugin, path *field.Path) (Usage, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	d.flatten("thresholds", "estimator")
	decoded := Usage{
		Weight: weight(d, "usage.weight", 5),
		Args: config.UsageArgs{
			CPUWeight: weight(d, "cpu.weight", 1), MemoryWeight: weight(d, "memory.weight", 1),
			CPUThreshold: value(d, "thresholds.cpu", 80, upTo(100)), MemoryThreshold: value(d, "thresholds.mem", 80, upTo(100)),
			Estimator: config.UsageEstimator{
				RequestRatio:  value(d, "estimator.request_ratio", 0.7, upTo(1)),
				BurstRatio:    value(d, "estimator.burst_ratio", 0, upTo(1)),
				RiskThreshold: value(d, "estimator.risk_threshold", 0.6, upTo(1)),
				RiskFactor:    value(d, "estimator.risk_factor", 1.2, number(1)),
				BestEffort: corev1.ResourceList{
					corev1.ResourceCPU: value(d, "estimator.be_cpu", resource.MustParse("250m"),
						amount("millicores", "250m", func(n int64) *resource.Quantity { return resource.NewMilliQuantity(n, resource.DecimalSI) })),
					corev1.ResourceMemory: value(d, "estimator.be_mem", resource.MustParse("200Mi"),
						amount("mebibytes", "200Mi", func(n int64) *resource.Quantity { return resource.NewQuantity(n<<20, resource.BinarySI) })),
				},
			},
		},
	}
	if decoded.Args.CPUWeight+decoded.Args.MemoryWeight == 0 {
		d.errs = append(d.errs, field.Invalid(d.path.Key("cpu.weight"), 0, "must be more than 0 if memory.weight is 0; to filter only, write usage.weight: 0"))
		decoded.Args.CPUWeight = 1
	}
	return decoded, d.finish(p.Name)
}

// flatten takes the keys of sections for keys with a dot: Volcano's documents have thresholds both ways.
func (d *decoder) flatten(sections ...string) {
	d.values = maps.Clone(d.values)
	for _, name := range sections {
		raw, ok := d.values[name]
		if !ok {
			continue
		}
		delete(d.values, name)
		var nested map[string]runtime.RawExtension
		if json.Unmarshal(raw.Raw, &nested) != nil || nested == nil {
			d.errs = append(d.errs, field.Invalid(d.path.Key(name), raw, "must be a map"))
		}
		for _, key := range slices.Sorted(maps.Keys(nested)) {
			dotted := name + "." + key
			if _, twice := d.values[dotted]; twice {
				d.errs = append(d.errs, field.Invalid(d.path.Key(name), raw, "contradicts "+dotted+"; keep one of them"))
			}
			d.values[dotted] = nested[key]
		}
	}
}

// upTo parses a number from 0 to most.
func upTo(most float64) func(runtime.RawExtension) (float64, error) {
	return func(v runtime.RawExtension) (float64, error) {
		n, err := strconv.ParseFloat(scalar(v), 64)
		if err != nil || !(n >= 0 && n <= most) {
			return 0, fmt.Errorf("must be a number from 0 to %v", most)
		}
		return n, nil
	}
}

// mostUnits bounds amounts without a unit, so that they do not overflow.
const mostUnits = 1 << 40

// amount parses a bare number of units, or a quantity in quotes.
func amount(units, example string, of func(int64) *resource.Quantity) func(runtime.RawExtension) (resource.Quantity, error) {
	return func(v runtime.RawExtension) (resource.Quantity, error) {
		var bare int64
		if json.Unmarshal(v.Raw, &bare) == nil && bare >= 0 && bare <= mostUnits {
			return *of(bare), nil
		}
		var text string
		if json.Unmarshal(v.Raw, &text) == nil {
			if quantity, err := resource.ParseQuantity(text); err == nil && quantity.Sign() >= 0 {
				return quantity, nil
			}
		}
		return resource.Quantity{}, fmt.Errorf("must be a whole number of %s, or a quantity of at least 0 such as %q", units, example)
	}
}

// The keys of the section metrics, and two more that Volcano does not have.
const (
	metricsType      = "type"
	metricsAddress   = "address"
	metricsInterval  = "interval"
	metricsTimeout   = "timeout"
	metricsInsecure  = "tls.insecureSkipVerify"
	metricsNodeLabel = "prometheus.nodeLabel"
	metricsIndex     = "elasticsearch.index"
	metricsHostname  = "elasticsearch.hostnameFieldName"
	metricsUsername  = "elasticsearch.username"
	metricsPassword  = "elasticsearch.password"
)

// MetricsKeys are the keys of the section metrics.
func MetricsKeys() []string {
	return []string{
		metricsType, metricsAddress, metricsInterval, metricsTimeout, metricsInsecure, metricsNodeLabel,
		metricsIndex, metricsHostname, metricsUsername, metricsPassword,
	}
}

// DecodeMetrics reads the section metrics of Volcano's file; path is that of the section. Without a type no metrics are
// collected, and nothing else may be given.
func DecodeMetrics(section map[string]string, path *field.Path) (config.UsageMetrics, field.ErrorList) {
	d := &decoder{path: path, values: map[string]runtime.RawExtension{}}
	for key, text := range section {
		raw, _ := json.Marshal(text) // A string can always be written.
		d.values[key] = runtime.RawExtension{Raw: raw}
	}
	text := func(key, fallback string) string { return value(d, key, fallback, given) }
	decoded := config.UsageMetrics{
		Type:               value(d, metricsType, "", kindOfSource),
		Address:            value(d, metricsAddress, "", func(v runtime.RawExtension) (string, error) { return scalar(v), Address(scalar(v)) }),
		Interval:           metav1.Duration{Duration: value(d, metricsInterval, 30*time.Second, interval)},
		Timeout:            metav1.Duration{Duration: value(d, metricsTimeout, time.Minute, duration(1, "more than 0s"))},
		InsecureSkipVerify: value(d, metricsInsecure, false, Bool),
		NodeLabel:          value(d, metricsNodeLabel, "instance", func(v runtime.RawExtension) (string, error) { return scalar(v), NodeLabel(scalar(v)) }),
		Elasticsearch: config.ElasticsearchMetrics{
			Index: text(metricsIndex, "metricbeat-*"), HostnameField: text(metricsHostname, "host.hostname"),
			Username: text(metricsUsername, ""), Password: text(metricsPassword, ""),
		},
	}
	_, hasType := section[metricsType]
	_, hasAddress := section[metricsAddress]
	switch {
	case !hasType && len(section) > 0:
		d.errs = append(d.errs, field.Required(path.Key(metricsType), "write prometheus, prometheus_adaptor or elasticsearch, or remove the section"))
	case NeedsAddress(decoded.Type) && !hasAddress:
		d.errs = append(d.errs, field.Required(path.Key(metricsAddress), addressHint))
	}
	return decoded, d.finish("metrics")
}

func interval(v runtime.RawExtension) (time.Duration, error) {
	d, err := duration(math.MinInt64, "")(v)
	if err != nil {
		return 0, err
	}
	return d, Interval(d)
}

// Interval says what is wrong with the time between two rounds of asking; nil when nothing is.
func Interval(d time.Duration) error {
	if d < time.Second || d >= 5*time.Minute {
		return errors.New("must be at least 1s, and less than 5m: older loads do not count")
	}
	return nil
}

// NeedsAddress reports whether a source is found by an address. The custom metrics API is that of the cluster.
func NeedsAddress(t config.MetricsType) bool {
	return t == config.MetricsPrometheus || t == config.MetricsElasticsearch
}

func kindOfSource(v runtime.RawExtension) (config.MetricsType, error) {
	if t := config.MetricsType(scalar(v)); slices.Contains(config.MetricsTypes(), t) {
		return t, nil
	}
	return "", errors.New("must be prometheus, prometheus_adaptor or elasticsearch")
}

// given is a text that is not empty.
func given(v runtime.RawExtension) (string, error) {
	if text := scalar(v); text != "" {
		return text, nil
	}
	return "", errors.New("must not be empty; remove it to have the default")
}

const addressHint = `write a URL such as "http://prometheus.monitoring:9090"`

// Address says what is wrong with the address of a source; nil when nothing is.
func Address(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("must be a URL that begins with http:// or https://, such as \"http://prometheus.monitoring:9090\"")
	}
	return nil
}

// NodeLabel says what is wrong with the name of a label of Prometheus; nil when nothing is. It becomes part of queries.
func NodeLabel(text string) error {
	for i, r := range text {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			text = ""
			break
		}
	}
	if text == "" {
		return errors.New("must be the name of a label in Prometheus: letters, digits and _, and no digit first")
	}
	return nil
}
