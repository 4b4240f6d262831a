// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reload

// Look reads the file, and reports whether there is something new in it.
func (r *Reloader) Look() (content []byte, news bool, err error) { return r.look() }
