// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExtenderArgs are the arguments of the plugin Extender. A verb is the last part of the URL that is asked; empty: the
// question is not asked.
type ExtenderArgs struct {
	metav1.TypeMeta

	// URLPrefix is the http or https URL below which the verbs are.
	URLPrefix string
	// TLSConfig says how an https URL is spoken to. Without it the roots of the system are trusted, and no client certificate is shown.
	TLSConfig ExtenderTLSConfig
	// HTTPTimeout is how long a call may take; more than 0.
	HTTPTimeout metav1.Duration
	// PredicateVerb asks whether a node takes a task, PrioritizeVerb how good nodes are for it.
	PredicateVerb, PrioritizeVerb string
	// AllocateFuncVerb tells that a node is reserved for a task, and may refuse; DeallocateFuncVerb that it no longer is.
	AllocateFuncVerb, DeallocateFuncVerb string
	// Ignorable: a failing extender has no opinion, instead of one against everything.
	Ignorable bool
	// ManagedResources limit the questions to tasks with a container that names one of them; none: all tasks.
	ManagedResources []string
	// MaxScore is the extender's score that counts as 100; those above it count the same, those below 0 as 0. At least 1.
	// The weight of the plugin in the profile should be a hundredth of it.
	MaxScore int64
}

// ExtenderTLSConfig says how TLS is spoken to an extender. Its names are those of kube-scheduler's own extenders. Files are PEM, and are read when the
// extender is asked first, and again while the scheduler runs.
type ExtenderTLSConfig struct {
	// Insecure: the server's certificate is not checked. Not with CAFile.
	Insecure bool
	// ServerName is who the server's certificate has to be for; empty: the host of the URL.
	ServerName string
	// CertFile and KeyFile are the client's certificate and its key; both or none.
	CertFile, KeyFile string
	// CAFile has the authorities that the server's certificate may be from; empty: those of the system.
	CAFile string
}
