// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	discoveryapply "k8s.io/client-go/applyconfigurations/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

const (
	// AuthorityAnnotation of the EndpointSlice is the certificate by which the scheduler is known, in PEM, for clients that do not come by way of the
	// cluster's API server.
	AuthorityAnnotation = "visibility.caldera.dev/authority"
	// apiServiceName is the name of the APIService.
	apiServiceName = "v1alpha1." + v1alpha1.GroupName
	// injectAnnotation of an APIService says that cert-manager writes by which certificate the server is known.
	injectAnnotation = "cert-manager.io/inject-ca-from"
	fieldManager     = "caldera-visibility"
	// lookAgain is how often what was written is looked at.
	lookAgain = 15 * time.Second
	// tryAgain is how long is waited after a failure; after each more in a row twice as long, up to lookAgain.
	tryAgain = time.Second
)

// announcer writes down where the scheduler that leads is, and by which certificate it is known.
type announcer struct {
	core        kubernetes.Interface
	aggregation aggregator.Interface
	// The address of the options is known.
	options Options
	// authority is the certificate; empty if others take care of that.
	authority []byte
}

func newAnnouncer(o Options, authority []byte) (*announcer, error) {
	config := rest.CopyConfig(o.Kubeconfig)
	// APIServices are not served as protobuf, which the scheduler's own connection asks for.
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	aggregation, err := aggregator.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a client of APIServices: %w", err)
	}
	return &announcer{core: core, aggregation: aggregation, options: o, authority: authority}, nil
}

// run writes it down, and looks from time to time whether it still says so.
func (a *announcer) run(ctx context.Context) {
	logger, said, pause := klog.FromContext(ctx), "", tryAgain
	for {
		next := lookAgain
		if err := errors.Join(a.tellWhere(ctx), a.tellCertificate(ctx)); err == nil {
			said, pause = "", tryAgain
		} else {
			next, pause = pause, min(2*pause, lookAgain)
			if text := err.Error(); text != said && ctx.Err() == nil {
				said = text
				logger.Error(err, "Others are not told where views are; trying again")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// tellWhere has the EndpointSlice of the Service say where this process is, and nothing else.
func (a *announcer) tellWhere(ctx context.Context) error {
	family := discoveryv1.AddressTypeIPv4
	if a.options.Address.To4() == nil {
		family = discoveryv1.AddressTypeIPv6
	}
	endpoint := discoveryapply.Endpoint().WithAddresses(a.options.Address.String()).WithConditions(discoveryapply.EndpointConditions().WithReady(true))
	if a.options.Pod != "" {
		endpoint = endpoint.WithTargetRef(coreapply.ObjectReference().WithKind("Pod").WithNamespace(a.options.Namespace).WithName(a.options.Pod))
	}
	slice := discoveryapply.EndpointSlice(ServiceName, a.options.Namespace).
		WithLabels(map[string]string{discoveryv1.LabelServiceName: ServiceName, discoveryv1.LabelManagedBy: fieldManager}).
		WithAddressType(family).WithEndpoints(endpoint).
		WithPorts(discoveryapply.EndpointPort().WithName("https").WithProtocol(corev1.ProtocolTCP).WithPort(int32(a.options.Port)))
	if len(a.authority) > 0 {
		slice = slice.WithAnnotations(map[string]string{AuthorityAnnotation: string(a.authority)})
	}
	_, err := a.core.DiscoveryV1().EndpointSlices(a.options.Namespace).Apply(ctx, slice, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("writing EndpointSlice %s/%s: %w", a.options.Namespace, ServiceName, err)
	}
	return nil
}

// tellCertificate has the APIService, if there is one, know this process by its certificate.
func (a *announcer) tellCertificate(ctx context.Context) error {
	if len(a.authority) == 0 {
		return nil
	}
	services := a.aggregation.ApiregistrationV1().APIServices()
	service, err := services.Get(ctx, apiServiceName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		// Views are reached by a port-forward only.
		return nil
	case err != nil:
		return fmt.Errorf("reading APIService %s: %w", apiServiceName, err)
	case service.Annotations[injectAnnotation] != "" || bytes.Equal(service.Spec.CABundle, a.authority):
		return nil
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"caBundle": a.authority}})
	if err != nil {
		return fmt.Errorf("writing the certificate down: %w", err)
	}
	if _, err := services.Patch(ctx, apiServiceName, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("writing the certificate into APIService %s: %w", apiServiceName, err)
	}
	return nil
}
