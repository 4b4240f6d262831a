// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/internal/testing/certificates"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/client"
)

// secure is an extender behind https that says whose certificate it was shown; nil: it asks for none. Its own is for 127.0.0.1 and example.com.
func secure(t *testing.T, clients *x509.CertPool) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = io.WriteString(w, `{"word": "`+name+`"}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	if clients != nil {
		server.TLS.ClientAuth, server.TLS.ClientCAs = tls.RequireAndVerifyClientCert, clients
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func over(url string, c config.ExtenderTLSConfig) *client.Client {
	return client.New(&config.ExtenderArgs{URLPrefix: url, HTTPTimeout: metav1.Duration{Duration: time.Minute}, TLSConfig: c})
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, key := certificates.Client(t, "caldera")
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(cert)
	open, closed := secure(t, nil), secure(t, clients)
	ca := write("ca.crt", certificates.Authority(open))
	stranger, strangersKey := certificates.Client(t, "stranger")
	shown := func(c config.ExtenderTLSConfig, cert, key string) config.ExtenderTLSConfig {
		c.CertFile, c.KeyFile = cert, key
		return c
	}
	known := config.ExtenderTLSConfig{CAFile: ca}
	certFile, keyFile := write("tls.crt", cert), write("tls.key", key)
	for name, tc := range map[string]struct {
		server *httptest.Server
		config config.ExtenderTLSConfig
		want   string
		// wrong are parts of the error; none: the call succeeds.
		wrong []string
	}{
		"an authority in a file":                 {server: open, config: known, want: "nobody"},
		"no check at all":                        {server: open, config: config.ExtenderTLSConfig{Insecure: true}, want: "nobody"},
		"the system does not know the authority": {server: open, wrong: []string{"unknown authority", "tlsConfig.caFile"}},
		"the certificate is for another name":    {server: open, config: config.ExtenderTLSConfig{CAFile: ca, ServerName: "example.com"}, want: "nobody"},
		"the certificate is not for that name":   {server: open, config: config.ExtenderTLSConfig{CAFile: ca, ServerName: "other.org"}, wrong: []string{"not other.org", "tlsConfig.serverName"}},
		"a client certificate":                   {server: closed, config: shown(known, certFile, keyFile), want: "caldera"},
		"a client certificate is wanted":         {server: closed, config: known, wrong: []string{"certificate required", "tlsConfig.certFile"}},
		"a client certificate of somebody else":  {server: closed, config: shown(known, write("s.crt", stranger), write("s.key", strangersKey)), wrong: []string{"tls:"}},
		"a key that is not the certificate's":    {server: closed, config: shown(known, certFile, filepath.Join(dir, "s.key")), wrong: []string{"private key"}},
		"a file that is not there":               {server: open, config: config.ExtenderTLSConfig{CAFile: filepath.Join(dir, "typo.crt")}, wrong: []string{"tlsConfig", "typo.crt", "no such file"}},
		"a file that is no certificate":          {server: open, config: config.ExtenderTLSConfig{CAFile: write("noise.crt", []byte("noise"))}, wrong: []string{"tlsConfig", "root certificates"}},
	} {
		t.Run(name, func(t *testing.T) {
			var answer struct{ Word string }
			err := over(tc.server.URL, tc.config).Call(t.Context(), "verb", nil, &answer)
			if len(tc.wrong) == 0 {
				if err != nil || answer.Word != tc.want {
					t.Errorf("got %q and error %v, want %q", answer.Word, err, tc.want)
				}
				return
			}
			if err == nil {
				t.Fatal("got no error")
			}
			for _, part := range tc.wrong {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got error %q, which does not say %q", err, part)
				}
			}
		})
	}
}

// TestAFileThatComesLater: whoever issues certificates may be slower than the scheduler.
func TestAFileThatComesLater(t *testing.T) {
	server := secure(t, nil)
	file := filepath.Join(t.TempDir(), "ca.crt")
	c := over(server.URL, config.ExtenderTLSConfig{CAFile: file})
	if err := c.Call(t.Context(), "verb", nil, nil); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got error %v", err)
	}
	if err := os.WriteFile(file, certificates.Authority(server), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Call(t.Context(), "verb", nil, nil); err != nil {
		t.Errorf("the file is there now: %v", err)
	}
}
