// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/component-base/configz"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/evictions"
	"github.com/caldera-scheduler/caldera/internal/testing/certificates"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

const token = "secret-of-ana"

// scheduler serves what a scheduler's secure port serves under /configz, to those whom allow lets in.
func scheduler(t *testing.T, allow func(*http.Request) int) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	configz.InstallHandler(mux)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := allow(r); code != http.StatusOK {
			http.Error(w, "forbidden: User \"ana\" cannot get path \"/configz\"", code)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	// Clients that hang up are part of the test.
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// bearer lets in who shows the token.
func bearer(r *http.Request) int {
	if r.Header.Get("Authorization") != "Bearer "+token {
		return http.StatusUnauthorized
	}
	return http.StatusOK
}

// fill serves a ledger of three decisions.
func fill(t *testing.T) {
	t.Helper()
	ledger := eviction.NewLedger(10, time.Minute)
	if err := ledger.Serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { configz.Delete(eviction.Entry) })
	now := time.Now().Add(-72 * time.Hour)
	job := func(name string) model.JobKey {
		return model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: name}
	}
	victim := func(name, of, queue string) *eviction.Victim {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}}
		return &eviction.Victim{Pod: pod, UID: types.UID(name), Job: job(of), Queue: queue, Node: "n1", Why: "queue " + queue + " is above its due"}
	}
	d := ledger.Begin(now, eviction.Decision{
		Action: eviction.Reclaim, Beneficiary: job("train"), Queue: "research", Members: make([]eviction.Member, 4),
		Victims: []*eviction.Victim{victim("web-0", "web", "prod"), victim("etl-0", "etl", "data")},
		Kept:    []eviction.Kept{{Reason: "of higher priority", Pods: 1}, {Reason: "not preemptable", Pods: 7}},
	})
	for _, v := range d.Victims {
		ledger.Sent(d.ID, v.UID)
		ledger.Leaving(v.UID, now.Add(time.Minute))
		ledger.Gone(v.UID)
	}
	ledger.Started(job("train"), now.Add(30*time.Second))
	d = ledger.Begin(now.Add(24*time.Hour), eviction.Decision{
		Action: eviction.Preempt, Beneficiary: job("urgent"), Queue: "data", Members: make([]eviction.Member, 1),
		Victims: []*eviction.Victim{victim("etl-1", "etl", "data"), victim("etl-2", "etl", "data")},
	})
	ledger.Sent(d.ID, "etl-1")
	ledger.Refused("etl-1", "the budget etl forbids it", now.Add(24*time.Hour+eviction.Protection))
	ledger.Begin(now.Add(48*time.Hour), eviction.Decision{
		Action: eviction.GangReclaim, Beneficiary: job("train"), Queue: "research", Members: make([]eviction.Member, 2),
		Victims: []*eviction.Victim{victim("web-1", "web", "prod")},
	})
}

// user writes a kubeconfig of a user of a cluster whose authority is that of the scheduler.
func user(t *testing.T, server *httptest.Server, change func(*clientcmdapi.Config)) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://cluster.invalid:6443", CertificateAuthorityData: certificates.Authority(server)}
	config.AuthInfos["ana"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "ana", Namespace: "ml"}
	config.CurrentContext = "c"
	if change != nil {
		change(config)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// run calls the command.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := evictions.New()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestDecisionsAreListed(t *testing.T) {
	fill(t)
	server := scheduler(t, bearer)
	config := user(t, server, nil)
	const (
		newest = "24h   gangreclaim   ml/train    research   prod        0/1       Pending\n"
		middle = "2d    preempt       ml/urgent   data       data        0/2       Cancelled\n"
		oldest = "3d    reclaim       ml/train    research   data,prod   2/2       Started\n"
	)
	const details = `3d ago: reclaim for ml/train in queue research, to start 4 pods; 2/2 evicted: Started after 30s
  VICTIM     JOB      QUEUE   NODE   STATE   RULE
  ml/web-0   ml/web   prod    n1     Gone    queue prod is above its due
  ml/etl-0   ml/etl   data    n1     Gone    queue data is above its due
  1 pod kept: of higher priority
  7 pods kept: not preemptable
`
	const refused = `2d ago: preempt for ml/urgent in queue data, to start 1 pod; 0/2 evicted: Cancelled after 0s
  evicting pod ml/etl-1 was refused: the budget etl forbids it
  VICTIM     JOB      QUEUE   NODE   STATE     RULE
  ml/etl-1   ml/etl   data    n1     Refused   queue data is above its due
  ml/etl-2   ml/etl   data    n1     Spared    queue data is above its due
`
	const pending = `24h ago: gangreclaim for ml/train in queue research, to start 2 pods; 0/1 evicted: Pending
  VICTIM     JOB      QUEUE   NODE   STATE     RULE
  ml/web-1   ml/web   prod    n1     Planned   queue prod is above its due
`
	const head = "AGE   ACTION        JOB         QUEUE      FROM        VICTIMS   OUTCOME\n"
	const nothing = "No such evictions are remembered; a scheduler that does not lead remembers none.\n"
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"all":                            {nil, head + newest + middle + oldest},
		"with all details":               {[]string{"-o", "wide"}, pending + "\n" + refused + "\n" + details},
		"for a job":                      {[]string{"urgent"}, refused},
		"taken from a job":               {[]string{"ml/etl"}, refused + "\n" + details},
		"of a job in another namespace":  {[]string{"urgent", "-n", "prod"}, nothing},
		"of a job of nobody":             {[]string{"nobody"}, nothing},
		"of a queue that lost and got":   {[]string{"--queue", "data", "-o", "wide"}, refused + "\n" + details},
		"of a job and a queue":           {[]string{"train", "--queue", "data"}, details},
		"of a queue nothing was done in": {[]string{"--queue", "idle"}, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := run(t, append(tc.args, "--scheduler", server.URL, "--kubeconfig", config)...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestEvictionsForNobodyHaveNoJob(t *testing.T) {
	ledger := eviction.NewLedger(10, time.Minute)
	if err := ledger.Serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { configz.Delete(eviction.Entry) })
	now := time.Now().Add(-72 * time.Hour)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "web-0"}}
	d := ledger.Begin(now, eviction.Decision{Action: eviction.Shuffle, Victims: []*eviction.Victim{{
		Pod: pod, UID: "web-0", Job: model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: "web"}, Queue: "prod", Node: "n1", Why: "node n1 is full",
	}}})
	ledger.Sent(d.ID, "web-0")
	ledger.Leaving("web-0", now.Add(time.Minute))
	ledger.Gone("web-0")
	server := scheduler(t, bearer)
	config := user(t, server, nil)
	for want, args := range map[string][]string{
		"AGE   ACTION    JOB   QUEUE   FROM   VICTIMS   OUTCOME\n3d    shuffle   -     -       prod   1/1       Done\n": nil,
		"3d ago: shuffle; 1/1 evicted: Done\n  VICTIM     JOB      QUEUE   NODE   STATE   RULE\n" +
			"  ml/web-0   ml/web   prod    n1     Gone    node n1 is full\n": {"ml/web"},
	} {
		got, err := run(t, append(args, "--scheduler", server.URL, "--kubeconfig", config)...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
	}
}

func TestMovesSayWhereTo(t *testing.T) {
	ledger := eviction.NewLedger(10, time.Minute)
	if err := ledger.Serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { configz.Delete(eviction.Entry) })
	big := model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: "big"}
	ledger.Begin(time.Now().Add(-time.Hour), eviction.Decision{
		Action: eviction.Consolidate, Beneficiary: big, Queue: "research", Members: []eviction.Member{{UID: "big-0", Name: "big-0"}},
		Victims: []*eviction.Victim{{
			Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "web-0"}}, UID: "web-0", MovesTo: "n2",
			Job: model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: "web"}, Queue: "prod", Node: "n1", Why: "consolidate",
		}},
	})
	server := scheduler(t, bearer)
	got, err := run(t, "ml/big", "--scheduler", server.URL, "--kubeconfig", user(t, server, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := "60m ago: consolidate for ml/big in queue research, to start 1 pod; 0/1 evicted: Pending\n  VICTIM     JOB      QUEUE   NODE       STATE     RULE\n" +
		"  ml/web-0   ml/web   prod    n1 to n2   Planned   consolidate\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}

func TestMachinesReadTheDocument(t *testing.T) {
	fill(t)
	server := scheduler(t, bearer)
	config := user(t, server, nil)
	for format, decode := range map[string]func([]byte, any) error{
		"json": json.Unmarshal, "yaml": func(text []byte, into any) error { return yaml.UnmarshalStrict(text, into) },
	} {
		text, err := run(t, "urgent", "--scheduler", server.URL, "--kubeconfig", config, "-o", format)
		if err != nil {
			t.Fatal(err)
		}
		var doc eviction.Document
		if err := decode([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Kind != eviction.DocumentKind || len(doc.Decisions) != 1 || len(doc.Decisions[0].Victims) != 2 || doc.Totals.Evicted != 2 {
			t.Errorf("as %s the document is %+v", format, doc)
		}
	}
}

func TestTheUsersOwnCredentialsAreShown(t *testing.T) {
	fill(t)
	server := scheduler(t, func(r *http.Request) int {
		certified := len(r.TLS.PeerCertificates) > 0 && r.TLS.PeerCertificates[0].Subject.CommonName == "ana"
		if !certified && bearer(r) != http.StatusOK || r.Header.Get("Impersonate-User") != "" {
			return http.StatusUnauthorized
		}
		return http.StatusOK
	})
	unknown := func(c *clientcmdapi.Config) { c.Clusters["c"].CertificateAuthorityData = nil }
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, certificates.Authority(server), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := certificates.Client(t, "ana")
	for name, tc := range map[string]struct {
		change func(*clientcmdapi.Config)
		args   []string
	}{
		"a token": {},
		"a client certificate": {change: func(c *clientcmdapi.Config) {
			c.AuthInfos["ana"] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
		}},
		"to a scheduler of another authority": {unknown, []string{"--certificate-authority", file}},
		"to whoever listens":                  {unknown, []string{"--insecure-skip-tls-verify"}},
		"without playing somebody else":       {change: func(c *clientcmdapi.Config) { c.AuthInfos["ana"].Impersonate = "root" }},
		"of another context": {func(c *clientcmdapi.Config) {
			c.CurrentContext = "other"
			c.Contexts["other"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "nobody"}
			c.AuthInfos["nobody"] = &clientcmdapi.AuthInfo{}
		}, []string{"--context", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, append(tc.args, "--scheduler", server.URL, "--kubeconfig", user(t, server, tc.change))...)
			if err != nil || !strings.Contains(out, "ml/urgent") {
				t.Errorf("got %v and\n%s", err, out)
			}
		})
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	server := scheduler(t, bearer)
	forbidding := scheduler(t, func(*http.Request) int { return http.StatusForbidden })
	blind := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `forbidden: User "system:anonymous" cannot get path "/configz"`, http.StatusForbidden)
	}))
	t.Cleanup(blind.Close)
	silent := scheduler(t, bearer)
	closed := silent.URL
	silent.Close()
	elsewhere := httptest.NewTLSServer(http.RedirectHandler(server.URL+"/configz", http.StatusFound))
	t.Cleanup(elsewhere.Close)
	page := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	t.Cleanup(page.Close)
	config := user(t, server, nil)
	nobody := user(t, server, func(c *clientcmdapi.Config) { c.AuthInfos["ana"].Token = "of somebody" })
	careless := user(t, server, func(c *clientcmdapi.Config) {
		c.Clusters["c"].CertificateAuthorityData, c.Clusters["c"].InsecureSkipTLSVerify = nil, true
	})
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"nobody listens":                  {[]string{"--scheduler", closed}, []string{"port-forward", "--scheduler"}},
		"an unknown certificate":          {[]string{"--scheduler", server.URL, "--kubeconfig", careless}, []string{"--certificate-authority", "--insecure-skip-tls-verify"}},
		"credentials of another cluster":  {[]string{"--scheduler", server.URL, "--kubeconfig", nobody}, []string{"401", "context"}},
		"without a right":                 {[]string{"--scheduler", forbidding.URL}, []string{"403", "--verb=get --non-resource-url=/configz", "clusterrolebinding"}},
		"one who is not known":            {[]string{"--scheduler", blind.URL}, []string{"token", "--authentication-kubeconfig"}},
		"no ledger":                       {[]string{"--scheduler", server.URL}, []string{"Reclaim"}},
		"another path":                    {[]string{"--scheduler", server.URL + "/nowhere"}, []string{"404", "--scheduler"}},
		"one that sends elsewhere":        {[]string{"--scheduler", elsewhere.URL}, []string{"302"}},
		"no scheduler":                    {[]string{"--scheduler", page.URL}, []string{"--scheduler"}},
		"a URL in the clear":              {[]string{"--scheduler", "http://127.0.0.1:10259"}, []string{"https://127.0.0.1:10259"}},
		"a format that is not known":      {[]string{"-o", "xml"}, []string{"table, wide, json, yaml"}},
		"a job that is none":              {[]string{"a/b/c"}, []string{"NAMESPACE/NAME"}},
		"two jobs":                        {[]string{"a", "b"}, []string{"at most 1 arg"}},
		"a file of authorities not there": {[]string{"--certificate-authority", "nobody.crt"}, []string{"nobody.crt"}},
		"both ways of checking":           {[]string{"--certificate-authority", "a", "--insecure-skip-tls-verify"}, []string{"none of the others can be"}},
		"a kubeconfig that is not there":  {[]string{"--kubeconfig", "nobody.conf"}, []string{"nobody.conf"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := tc.args
			if !strings.Contains(strings.Join(args, " "), "--kubeconfig") {
				args = append(args, "--kubeconfig", config)
			}
			out, err := run(t, args...)
			if err == nil {
				t.Fatalf("no error, and\n%s", out)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, which does not say %q", err, want)
				}
			}
			if out != "" || strings.Contains(err.Error(), token) {
				t.Errorf("the error is %v, the output\n%s", err, out)
			}
		})
	}
}
