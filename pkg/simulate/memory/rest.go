// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Server answers the requests of real clientsets: what they send and get are the bytes that an API server would get and send, with its
// status codes. Unlike behind package fakes, requests do not wait for each other, so that one may be held up.
type Server struct {
	// Admit, if not nil, fills in what somebody creates, as defaults and admission would, or says why it cannot be. It is set before the first
	// request. Bindings and evictions are not its concern.
	Admit func(scenario.Object) error

	api    *API
	paths  request.RequestInfoFactory
	codecs serializer.CodecFactory
}

var _ http.RoundTripper = &Server{}

// Server returns a server of the API.
func (a *API) Server() *Server {
	return &Server{
		api:    a,
		paths:  request.RequestInfoFactory{APIPrefixes: sets.NewString("apis", "api"), GrouplessAPIPrefixes: sets.NewString("api")},
		codecs: serializer.NewCodecFactory(a.scheme),
	}
}

// Config is a configuration for real clientsets. Their requests go through the given transport, which hands them to a Server.
func Config(through http.RoundTripper) *rest.Config {
	return &rest.Config{Host: "http://memory", Transport: through, QPS: -1}
}

// Info says what a request asks for.
func (s *Server) Info(r *http.Request) (*request.RequestInfo, error) {
	return s.paths.NewRequestInfo(r)
}

// RoundTrip implements http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return nil, fmt.Errorf("reading a request: %w", err)
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	info, err := s.Info(r)
	if err != nil {
		return Refuse(r, apierrors.NewBadRequest(err.Error()))
	}
	if info.Verb == "watch" {
		return s.watch(r, info)
	}
	o, err := s.answer(r, info, body)
	if err != nil {
		return Refuse(r, err)
	}
	code := http.StatusOK
	if info.Verb == "create" {
		code = http.StatusCreated
	}
	return s.respond(r, code, o)
}

// Refuse is the response that tells a client of an error.
func Refuse(r *http.Request, err error) (*http.Response, error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	failure := status.Status()
	failure.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	encoded, err := json.Marshal(failure)
	if err != nil {
		return nil, fmt.Errorf("encoding a status: %w", err)
	}
	response := responseOf(r, int(failure.Code), io.NopCloser(bytes.NewReader(encoded)))
	if failure.Details != nil && failure.Details.RetryAfterSeconds > 0 {
		response.Header.Set("Retry-After", fmt.Sprint(failure.Details.RetryAfterSeconds))
	}
	return response, nil
}

func responseOf(r *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": []string{runtime.ContentTypeJSON}}, Body: body, ContentLength: -1, Request: r,
	}
}

// respond sends an object; without one, that the request has succeeded.
func (s *Server) respond(r *http.Request, code int, o runtime.Object) (*http.Response, error) {
	if o == nil {
		o = &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}
	}
	encoded, err := s.encode(o)
	if err != nil {
		return Refuse(r, err)
	}
	return responseOf(r, code, io.NopCloser(bytes.NewReader(encoded))), nil
}

// encode writes an object with its kind.
func (s *Server) encode(o runtime.Object) ([]byte, error) {
	if o.GetObjectKind().GroupVersionKind().Empty() {
		kinds, _, err := s.api.scheme.ObjectKinds(o)
		if err != nil {
			return nil, fmt.Errorf("looking up the kind of a %T: %w", o, err)
		}
		o.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", o, err)
	}
	return encoded, nil
}

// answer does what a request asks for, and returns what is to be sent; nil if that is only that it has succeeded.
func (s *Server) answer(r *http.Request, info *request.RequestInfo, body []byte) (runtime.Object, error) {
	if !info.IsResourceRequest {
		return discover(info)
	}
	gvr := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	switch info.Verb {
	case "get":
		return s.api.Get(gvr, info.Namespace, info.Name)
	case "list":
		return s.list(r, info, gvr)
	case "create":
		return s.create(info, gvr, body)
	case "update":
		return s.change(info, gvr, func(object) ([]byte, error) {
			o, _, err := s.codecs.UniversalDeserializer().Decode(body, nil, nil)
			if err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			return s.encode(o)
		})
	case "patch":
		kind := types.PatchType(r.Header.Get("Content-Type"))
		return s.change(info, gvr, func(before object) ([]byte, error) { return patched(before, kind, body) })
	case "delete":
		var options metav1.DeleteOptions
		if len(body) > 0 {
			kind := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
			if _, _, err := s.codecs.UniversalDeserializer().Decode(body, &kind, &options); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
		}
		return nil, s.api.Delete(gvr, info.Namespace, info.Name, options)
	}
	return nil, apierrors.NewMethodNotSupported(gvr.GroupResource(), info.Verb)
}

// discover answers the question which APIs are served.
func discover(info *request.RequestInfo) (runtime.Object, error) {
	for _, served := range []schema.GroupVersion{volcano.SchemeGroupVersion, coscheduling.SchemeGroupVersion} {
		if info.Path == "/apis/"+served.String() {
			return &metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: served.String(),
			}, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, info.Path)
}

// kind returns the kind of a resource.
func (s *Server) kind(gvr schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	for gvk := range s.api.scheme.AllKnownTypes() {
		if gvk.GroupVersion() == gvr.GroupVersion() && scenario.ResourceOf(gvk) == gvr {
			return gvk, nil
		}
	}
	return schema.GroupVersionKind{}, apierrors.NewNotFound(gvr.GroupResource(), "")
}

func (s *Server) list(r *http.Request, info *request.RequestInfo, gvr schema.GroupVersionResource) (runtime.Object, error) {
	gvk, err := s.kind(gvr)
	if err != nil {
		return nil, err
	}
	options, err := optionsOf(r)
	if err != nil {
		return nil, err
	}
	return s.api.List(gvr, gvk, info.Namespace, options)
}

// optionsOf reads which objects a list or watch is to show.
func optionsOf(r *http.Request) (metav1.ListOptions, error) {
	options := metav1.ListOptions{}
	query := r.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &options, nil); err != nil {
		return options, apierrors.NewBadRequest(err.Error())
	}
	return options, nil
}

func (s *Server) create(info *request.RequestInfo, gvr schema.GroupVersionResource, body []byte) (runtime.Object, error) {
	o, _, err := s.codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	switch sent := o.(type) {
	case *corev1.Binding:
		return nil, s.api.bind(info.Namespace, sent)
	case *policyv1.Eviction:
		return nil, s.api.evict(info.Namespace, sent.Name, sent.DeleteOptions)
	}
	created, ok := o.(object)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is no object", o))
	}
	if s.Admit != nil {
		if err := s.Admit(created); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if err := s.api.Create(gvr, created, info.Namespace); err != nil {
		return nil, err
	}
	return s.api.Get(gvr, info.Namespace, created.GetName())
}

// change writes what an update or a patch makes of an object. What they say of the status counts for that subresource alone, and nothing
// else does there. A patch is repeated if the object was changed meanwhile, unless it names a version.
func (s *Server) change(info *request.RequestInfo, gvr schema.GroupVersionResource, apply func(before object) ([]byte, error)) (runtime.Object, error) {
	found, err := s.api.Get(gvr, info.Namespace, info.Name)
	if err != nil {
		return nil, err
	}
	before, ok := found.(object)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("a %T is no object", found))
	}
	after, err := apply(before)
	if err != nil {
		return nil, err
	}
	merged, err := merge(before, after, info.Subresource == "status")
	if err != nil {
		return nil, err
	}
	gvk, err := s.kind(gvr)
	if err != nil {
		return nil, err
	}
	o, _, err := s.codecs.UniversalDeserializer().Decode(merged, &gvk, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := s.api.Update(gvr, o, info.Namespace); err != nil {
		return nil, err
	}
	return s.api.Get(gvr, info.Namespace, info.Name)
}

// merge takes the status from the one and everything else from the other. Preconditions are those of the change.
func merge(before object, changed []byte, status bool) ([]byte, error) {
	var after, stored map[string]any
	if err := json.Unmarshal(changed, &after); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	encoded, err := json.Marshal(before)
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", before, err)
	}
	if err := json.Unmarshal(encoded, &stored); err != nil {
		return nil, fmt.Errorf("decoding a %T: %w", before, err)
	}
	if !status {
		after["status"] = stored["status"]
		return json.Marshal(after)
	}
	sent, _ := after["metadata"].(map[string]any)
	kept, _ := stored["metadata"].(map[string]any)
	for _, condition := range []string{"uid", "resourceVersion"} {
		if value, ok := sent[condition]; ok {
			kept[condition] = value
		}
	}
	stored["status"] = after["status"]
	return json.Marshal(stored)
}

// patched is an object after a patch.
func patched(before object, kind types.PatchType, patch []byte) ([]byte, error) {
	original, err := json.Marshal(before)
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", before, err)
	}
	var after []byte
	switch kind {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(original, patch)
	case types.StrategicMergePatchType:
		after, err = strategicpatch.StrategicMergePatch(original, patch, before)
	case types.JSONPatchType:
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(patch); err == nil {
			after, err = operations.Apply(original)
		}
	default:
		return nil, apierrors.NewMethodNotSupported(schema.GroupResource{}, "patch with content type "+string(kind))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return after, nil
}

// watch streams what a watch shows until the client stops reading.
func (s *Server) watch(r *http.Request, info *request.RequestInfo) (*http.Response, error) {
	gvr := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	options, err := optionsOf(r)
	if err != nil {
		return Refuse(r, err)
	}
	w, err := s.api.Watch(gvr, info.Namespace, options)
	if err != nil {
		return Refuse(r, err)
	}
	reader, writer := io.Pipe()
	go s.stream(r, w, writer)
	return responseOf(r, http.StatusOK, watchBody{reader, w}), nil
}

// watchBody is the body of a watch's response. To close it ends the watch.
type watchBody struct {
	*io.PipeReader
	watch watch.Interface
}

// Close implements io.Closer.
func (b watchBody) Close() error {
	b.watch.Stop()
	return b.PipeReader.Close()
}

// stream writes what happens, one event a line.
func (s *Server) stream(r *http.Request, w watch.Interface, to *io.PipeWriter) {
	defer w.Stop()
	for {
		select {
		case <-r.Context().Done():
			to.CloseWithError(r.Context().Err())
			return
		case event, ok := <-w.ResultChan():
			if !ok {
				to.Close() //nolint:errcheck,gosec // it never fails
				return
			}
			o, err := s.encode(event.Object)
			if err == nil {
				_, err = fmt.Fprintf(to, "{\"type\":%q,\"object\":%s}\n", event.Type, o)
			}
			if err != nil {
				to.CloseWithError(err)
				return
			}
		}
	}
}
