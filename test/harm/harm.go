// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harm has what makes requests and extenders fail, for programs that look at what becomes of everybody else.
package harm
