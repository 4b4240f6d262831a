// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs etcd, kube-apiserver and kube-controller-manager inside this process.
//
// The three share process-wide state (feature gates, metric registries, klog), so a process can run each of them once.
package controlplane

import (
	"context"
	"fmt"
	"io"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// etcdQuota is the size etcd refuses to grow beyond, in bytes.
const etcdQuota = 8 << 30

// Etcd says where etcd keeps its data and listens.
type Etcd struct {
	DataDir      string
	ClientSocket string
	PeerSocket   string
	Log          io.Writer
}

// Endpoint is the client URL, in the form kube-apiserver's --etcd-servers takes.
func (e Etcd) Endpoint() string { return "unix://" + e.ClientSocket }

// Start runs a single-member etcd that never waits for the disk, and returns when it serves.
func (e Etcd) Start(ctx context.Context) (*embed.Etcd, error) {
	client := url.URL{Scheme: "unix", Path: e.ClientSocket}
	peer := url.URL{Scheme: "unix", Path: e.PeerSocket}
	cfg := embed.NewConfig()
	cfg.Name = "localcluster"
	cfg.Dir = e.DataDir
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = true
	cfg.QuotaBackendBytes = etcdQuota
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newZap(e.Log))

	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("starting etcd: %w", err)
	case <-ctx.Done():
		server.Close()
		return nil, fmt.Errorf("starting etcd: %w", context.Cause(ctx))
	}
}

func newZap(w io.Writer) *zap.Logger {
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(encoder), zapcore.AddSync(w), zap.WarnLevel)).Named("etcd")
}
