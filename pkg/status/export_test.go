// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status

// Pause is what a teller does after a write.
var Pause = (*Writer).pause

// Differ reports whether people would not pass over what has changed in a message.
var Differ = differ

// TellPods has the pods of a job say why it waits.
var TellPods = (*Writer).tellPods
