// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

func TestVersionsAreHeldAgainstTheSkewPolicy(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]State{
		"v1.33.9": Stops, "v1.34.0": OK, "v1.36.9-gke.100": OK, "v1.37.0": OK, "v1.37.1-eks-5e0fdde": OK, "v1.38.2+k3s1": OK, "v1.39.0": Stops, "v2.37.0": Stops,
		"v0.99.0": Stops, "devel": Unknown,
	} {
		c := cluster{server: &version.Info{GitVersion: server}}
		if got := c.apiServer()[0]; got.State != want {
			t.Errorf("with an API server %s it is %+v, want %s", server, got, want)
		}
	}
}

func TestOptionsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		command, args []string
		want          map[string]string
	}{
		"one a line": {args: []string{"--logtostderr", "--scheduler-conf=/v/c", "-v=3", "2>&1"}, want: map[string]string{"logtostderr": "true", "scheduler-conf": "/v/c", "v": "3"}},
		"value apart": {
			command: []string{"/vc-scheduler", "--scheduler-conf", "/v/c"}, args: []string{"--csi-storage"},
			want: map[string]string{"scheduler-conf": "/v/c", "csi-storage": "true"},
		},
		"in a shell": {command: []string{"sh", "-c", "/vc-scheduler --scheduler-name=a --scheduler-name b"}, want: map[string]string{"c": "/vc-scheduler", "scheduler-name": "a,b"}},
		"nothing":    {want: map[string]string{}},
	} {
		got := optionsOf(&corev1.Container{Command: tc.command, Args: tc.args})
		if !maps.Equal(got, tc.want) {
			t.Errorf("%s: options %v, want %v", name, got, tc.want)
		}
	}
}

// file is where Volcano's own manifests put the configuration.
const file = "/volcano.scheduler/volcano-scheduler.conf"

// volcanoScheduler is a Deployment as Volcano installs it.
func volcanoScheduler(args ...string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "volcano-scheduler", Namespace: "volcano-system"},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "volcano-scheduler", Image: "docker.io/volcanosh/vc-scheduler:v1.14.0", Args: append([]string{"--scheduler-conf=" + file}, args...),
				VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/volcano.scheduler"}},
			}},
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "volcano-scheduler-configmap"},
			}}}},
		}}},
	}
}

func partsOf(t *testing.T, d *appsv1.Deployment) *cluster {
	t.Helper()
	c := &cluster{}
	c.addPart("Deployment", &d.ObjectMeta, d.Spec.Replicas, &d.Spec.Template.Spec)
	if len(c.parts) != 1 {
		t.Fatalf("parts %v", c.parts)
	}
	return c
}

func TestTheConfigurationIsWhatIsMounted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change         func(*corev1.PodSpec)
		wantMap, wantK string
	}{
		"a whole ConfigMap": {func(*corev1.PodSpec) {}, "volcano-scheduler-configmap", "volcano-scheduler.conf"},
		"one file": {
			func(p *corev1.PodSpec) { p.Containers[0].VolumeMounts[0].MountPath = file }, "volcano-scheduler-configmap", "volcano-scheduler.conf",
		},
		"by another key": {
			func(p *corev1.PodSpec) {
				p.Volumes[0].ConfigMap.Items = []corev1.KeyToPath{{Key: "mine", Path: "volcano-scheduler.conf"}}
			}, "volcano-scheduler-configmap", "mine",
		},
		"elsewhere":      {func(p *corev1.PodSpec) { p.Containers[0].VolumeMounts[0].MountPath = "/tls" }, "", ""},
		"from no map":    {func(p *corev1.PodSpec) { p.Volumes[0].ConfigMap = nil }, "", ""},
		"without volume": {func(p *corev1.PodSpec) { p.Volumes = nil }, "", ""},
	} {
		d := volcanoScheduler()
		tc.change(&d.Spec.Template.Spec)
		part := partsOf(t, d).parts[0]
		if m, k := part.mounted(part.options["scheduler-conf"]); m != tc.wantMap || k != tc.wantK {
			t.Errorf("%s: it is key %q of %q, want %q of %q", name, k, m, tc.wantK, tc.wantMap)
		}
	}
}

func TestOptionsThatDifferAreTold(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]State{
		"--leader-elect=false --schedule-period=1s":                         nil,
		"--scheduler-name=volcano --default-queue=default --node-selector=": nil,
		"--scheduler-name=volcano --scheduler-name=ml":                      {ToDo},
		"--node-selector=pool:batch":                                        {Differs},
		"--feature-gates=SchedulingGatesQueueAdmission=true":                {ToDo},
		"--feature-gates=SchedulingGatesQueueAdmission=false":               nil,
		"--plugins-dir=/p --default-queue=q":                                {Differs, ToDo},
		"--scheduler-sharding-mode=hard":                                    {Differs},
	} {
		var got []State
		for _, f := range partsOf(t, volcanoScheduler(args)).parts[0].optionsThatDiffer() {
			got = append(got, f.State)
			if f.Do == "" || f.What != "Deployment volcano-system/volcano-scheduler" {
				t.Errorf("%s: nobody knows what to do about %+v", args, f)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %s is said %v, want %v", args, got, want)
		}
	}
}

func TestOlderDefinitionsLackFields(t *testing.T) {
	t.Parallel()
	for _, name := range definitions {
		ours, err := shipped(name)
		if err != nil {
			t.Fatal(err)
		}
		if missing := missingFields(schemaOf(ours), schemaOf(ours.DeepCopy()), ""); len(missing) > 0 || schemaOf(ours) == nil {
			t.Errorf("%s lacks %v of itself", name, missing)
		}
	}
	ours, err := shipped("podgroups.scheduling.volcano.sh")
	if err != nil {
		t.Fatal(err)
	}
	older := ours.DeepCopy()
	spec := schemaOf(older).Properties["spec"]
	delete(spec.Properties, "networkTopology")
	policies := spec.Properties["subGroupPolicy"]
	delete(policies.Items.Schema.Properties, "matchLabelKeys")
	got := missingFields(schemaOf(ours), schemaOf(older), "")
	if want := []string{"spec.networkTopology", "spec.subGroupPolicy[].matchLabelKeys"}; !slices.Equal(got, want) {
		t.Errorf("it lacks %v, want %v", got, want)
	}
	schemaOf(older).Properties["spec"] = apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}
	if got := missingFields(schemaOf(ours), schemaOf(older), ""); len(got) > 0 {
		t.Errorf("what takes anything lacks %v", got)
	}
}

func TestTwoThatPlaceTheSamePodsStop(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lease := func(holder string, ago time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: now.Add(-ago)},
		}}
	}
	for name, tc := range map[string]struct {
		lease    *coordinationv1.Lease
		replicas int32
		want     []State
	}{
		"none":               {nil, 1, nil},
		"both":               {lease("a", time.Second), 1, []State{Stops}},
		"only Caldera":       {lease("a", time.Second), 0, []State{OK}},
		"it was there once":  {lease("a", time.Hour), 1, nil},
		"it was given up":    {lease("", time.Second), 1, nil},
		"never held by any":  {&coordinationv1.Lease{}, 1, nil},
		"renewed just so":    {lease("a", 14*time.Second), 1, []State{Stops}},
		"run out right then": {lease("a", 15*time.Second), 1, nil},
	} {
		d := volcanoScheduler()
		d.Spec.Replicas = &tc.replicas
		c := partsOf(t, d)
		c.lease, c.now = tc.lease, now
		var got []State
		for _, f := range c.others() {
			got = append(got, f.State)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestTheVerdictIsOneSentence(t *testing.T) {
	t.Parallel()
	of := func(states ...State) []Finding {
		var all []Finding
		for _, s := range states {
			all = append(all, Finding{State: s})
		}
		return all
	}
	for want, findings := range map[string][]Finding{
		"This cluster can switch.": of(OK, OK),
		"This cluster can switch once 1 thing is done; 2 things will differ.":                     of(OK, ToDo, Differs, Differs),
		"This cluster can switch once 2 things are done; 1 thing is not known.":                   of(Unknown, ToDo, ToDo),
		"This cluster cannot switch: 1 line stops it; 1 thing will differ, 1 thing is not known.": of(Stops, ToDo, Differs, Unknown),
	} {
		if got := verdict(findings); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
}

func TestEachLineOfTheConfigurationIsJudged(t *testing.T) {
	t.Parallel()
	for conf, want := range map[string]string{
		"actions: \"enqueue, allocate, backfill\"\ntiers:\n- plugins:\n  - name: gang\n  - name: deviceshare\n  - name: capacity\n    arguments:\n      usageHalfLife: 24h\n": "ok,to do,to do",
		"actions: \"enqueue, alocate\"\n":                                                "stops",
		"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n": "stops",
		"{": "stops",
		"":  "unknown",
		"actions: \"allocate\"\ntiers:\n- plugins:\n  - name: gang\n    enableJobOrdr: true\n": "ok,to do",
	} {
		c := cluster{conf: c(conf)}
		var got []string
		for _, f := range c.configuration(t.Context()) {
			if f.State != Differs {
				got = append(got, string(f.State))
			}
		}
		if strings.Join(got, ",") != want {
			t.Errorf("of\n%sis said %v, want %s", conf, c.configuration(t.Context()), want)
		}
	}
}

func c(text string) conf {
	if text == "" {
		return conf{}
	}
	return conf{source: "test", data: []byte(text)}
}
