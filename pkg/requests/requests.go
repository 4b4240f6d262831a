// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requests tells what became of requests to the API server that failed.
package requests

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// MayBeDone reports whether a request may have been carried out though it failed: not if the API server said that it was not. What failed
// because of a conflict may be the second attempt of a client that did not get an answer to the first.
func MayBeDone(err error) bool {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err),
		apierrors.IsTooManyRequests(err), apierrors.IsMethodNotSupported(err):
		return false
	}
	return true
}
