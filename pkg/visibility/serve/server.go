// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serve shows views as an API of Kubernetes, on a listener of its own. The cluster's API server passes requests on to it (an APIService), and
// it asks that one who they are from and whether they may. It writes down where it is, and by which certificate it can be known.
package serve

import (
	"fmt"
	"net"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"

	definitions "github.com/caldera-scheduler/caldera/pkg/apis/visibility/openapi"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

// Asking is how a server learns who asks, and whether they may.
type Asking struct {
	Authentication *options.DelegatingAuthenticationOptions
	Authorization  *options.DelegatingAuthorizationOptions
}

// mostInFlight is how many requests are answered at a time; who asks beyond that is told to try again. Writing a list of thousands of jobs takes a core
// while it lasts, and scheduling needs it, too.
const mostInFlight = 4

// newServer builds a server on a listener. It reads from the cluster how requests are authenticated, and fails if it cannot.
func newServer(views *visibility.Views, asking Asking, listener net.Listener, cert options.GeneratableKeyCert) (*genericserver.GenericAPIServer, error) {
	c := genericserver.NewConfig(codecs)
	c.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	c.MaxRequestsInFlight = mostInFlight
	c.EnableIndex, c.EnableProfiling, c.EnableMetrics = false, false, false
	namer := openapi.NewDefinitionNamer(scheme)
	c.OpenAPIConfig = genericserver.DefaultOpenAPIConfig(definitions.GetOpenAPIDefinitions, namer)
	c.OpenAPIConfig.Info.Title = "Caldera"
	c.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(definitions.GetOpenAPIDefinitions, namer)
	c.OpenAPIV3Config.Info.Title = "Caldera"

	serving := options.NewSecureServingOptions().WithLoopback()
	serving.Listener, serving.ServerCert = listener, cert
	if err := serving.ApplyTo(&c.SecureServing, &c.LoopbackClientConfig); err != nil {
		return nil, fmt.Errorf("setting up TLS: %w", err)
	}
	if err := asking.Authentication.ApplyTo(&c.Authentication, c.SecureServing, c.OpenAPIConfig); err != nil {
		return nil, fmt.Errorf("setting up authentication: %w", err)
	}
	if err := asking.Authorization.ApplyTo(&c.Authorization); err != nil {
		return nil, fmt.Errorf("setting up authorization: %w", err)
	}
	server, err := c.Complete(nil).New("caldera-visibility", genericserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("building the API server: %w", err)
	}
	group := genericserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, scheme, metav1.ParameterCodec, codecs)
	served := map[string]rest.Storage{}
	for _, r := range resources {
		served[r.name] = &storage{r, views}
	}
	group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = served
	if err := server.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("installing the API: %w", err)
	}
	return server, nil
}
