// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package requests

// Namespaces returns of how many namespaces requests wait or are under way.
func (l *Limiter) Namespaces() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.namespaces)
}
