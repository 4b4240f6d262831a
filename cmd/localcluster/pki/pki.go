// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes the keys and certificates of a local control plane, once per data directory.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity outlives any data directory that is kept.
const validity = 10 * 365 * 24 * time.Hour

// Files are the paths of everything Ensure made. Keys are readable by the owner only.
type Files struct {
	CACert, CAKey           string
	ServingCert, ServingKey string
	ServiceAccountKey       string
	// ProxyCACert is the authority of the certificate by which kube-apiserver is known to servers that it passes requests on to.
	ProxyCACert, ProxyCAKey string
	ProxyCert, ProxyKey     string
	// Tokens is a file for kube-apiserver's --token-auth-file with one line, the administrator's. It is a token and not
	// a client certificate because kube-apiserver verifies a certificate's signature at every request, a tenth of the
	// cost of a bind.
	Tokens string
}

// Ensure returns the key material in dir, making what is missing. Existing files are kept: kubeconfigs and service
// account tokens issued before a restart stay valid.
func Ensure(dir string, now time.Time) (Files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Files{}, fmt.Errorf("creating %s: %w", dir, err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	f := Files{
		CACert: at("ca.crt"), CAKey: at("ca.key"),
		ServingCert: at("serving.crt"), ServingKey: at("serving.key"),
		ServiceAccountKey: at("service-account.key"), Tokens: at("tokens.csv"),
		ProxyCACert: at("front-proxy-ca.crt"), ProxyCAKey: at("front-proxy-ca.key"), ProxyCert: at("front-proxy.crt"), ProxyKey: at("front-proxy.key"),
	}
	for _, part := range []struct {
		files  []string
		create func(time.Time) error
	}{
		{[]string{f.CACert, f.CAKey, f.ServingCert, f.ServingKey, f.ServiceAccountKey, f.Tokens}, f.create},
		{[]string{f.ProxyCACert, f.ProxyCAKey, f.ProxyCert, f.ProxyKey}, f.createProxy},
	} {
		complete, err := exist(part.files...)
		if err == nil && !complete {
			err = part.create(now)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

func exist(paths ...string) (bool, error) {
	for _, path := range paths {
		_, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("looking for %s: %w", path, err)
		}
	}
	return true, nil
}

func (f Files) create(now time.Time) error {
	caCert, caKey, err := newAuthority("localcluster-ca", f.CACert, f.CAKey, now)
	if err != nil {
		return err
	}
	servingKey, err := newKey(f.ServingKey)
	if err != nil {
		return err
	}
	if _, err := writeCert(f.ServingCert, certRequest{
		now: now, key: servingKey, signer: caCert, signerKey: caKey,
		template: x509.Certificate{
			Subject:     pkix.Name{CommonName: "kube-apiserver"},
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
			DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		},
	}); err != nil {
		return err
	}
	if _, err := newKey(f.ServiceAccountKey); err != nil {
		return err
	}
	if err := os.WriteFile(f.Tokens, []byte(rand.Text()+",admin,admin,system:masters\n"), 0o600); err != nil {
		return fmt.Errorf("writing token: %w", err)
	}
	return nil
}

// ProxyName is the name that kube-apiserver has before servers that it passes requests on to.
const ProxyName = "front-proxy-client"

func (f Files) createProxy(now time.Time) error {
	caCert, caKey, err := newAuthority("localcluster-front-proxy-ca", f.ProxyCACert, f.ProxyCAKey, now)
	if err != nil {
		return err
	}
	key, err := newKey(f.ProxyKey)
	if err != nil {
		return err
	}
	_, err = writeCert(f.ProxyCert, certRequest{
		now: now, key: key, signer: caCert, signerKey: caKey,
		template: x509.Certificate{
			Subject:     pkix.Name{CommonName: ProxyName},
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		},
	})
	return err
}

// newAuthority makes a certificate that others are signed by, and its key.
func newAuthority(name, certFile, keyFile string, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := newKey(keyFile)
	if err != nil {
		return nil, nil, err
	}
	cert, err := writeCert(certFile, certRequest{
		now: now, key: key, signerKey: key,
		template: x509.Certificate{
			Subject:  pkix.Name{CommonName: name},
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			IsCA:     true,
		},
	})
	return cert, key, err
}

func newKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating key: %w", err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encoding key: %w", err)
	}
	if err := os.WriteFile(path, encoded, 0o600); err != nil {
		return nil, fmt.Errorf("writing key: %w", err)
	}
	return key, nil
}

// certRequest describes one certificate. Without a signer it is self-signed.
type certRequest struct {
	now       time.Time
	template  x509.Certificate
	key       crypto.Signer
	signer    *x509.Certificate
	signerKey crypto.Signer
}

func writeCert(path string, req certRequest) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(math.MaxInt64))
	if err != nil {
		return nil, fmt.Errorf("choosing serial number: %w", err)
	}
	template := req.template
	template.SerialNumber = serial
	template.NotBefore = req.now.Add(-time.Hour) // clocks of containers sharing a host may differ
	template.NotAfter = req.now.Add(validity)
	template.BasicConstraintsValid = true
	signer := req.signer
	if signer == nil {
		signer = &template
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, signer, req.key.Public(), req.signerKey)
	if err != nil {
		return nil, fmt.Errorf("signing certificate %s: %w", template.Subject, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading back certificate %s: %w", template.Subject, err)
	}
	encoded, err := certutil.EncodeCertificates(cert)
	if err != nil {
		return nil, fmt.Errorf("encoding certificate %s: %w", template.Subject, err)
	}
	if err := os.WriteFile(path, encoded, 0o600); err != nil {
		return nil, fmt.Errorf("writing certificate: %w", err)
	}
	return cert, nil
}
