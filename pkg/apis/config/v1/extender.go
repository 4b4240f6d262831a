// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ExtenderArgs are the arguments of the plugin Extender. A verb is the last part of the URL that is asked; without it the
// question is not asked.
type ExtenderArgs struct {
	metav1.TypeMeta `json:",inline"`

	// URLPrefix is the http or https URL below which the verbs are.
	// +optional
	URLPrefix string `json:"urlPrefix,omitempty"`
	// TLSConfig says how an https URL is spoken to. Without it the roots of the system are trusted, and no client certificate is shown.
	// +optional
	TLSConfig ExtenderTLSConfig `json:"tlsConfig,omitzero"`
	// HTTPTimeout is how long a call may take; more than 0.
	// +optional
	HTTPTimeout *metav1.Duration `json:"httpTimeout,omitempty"`
	// PredicateVerb asks whether a node takes a task.
	// +optional
	PredicateVerb string `json:"predicateVerb,omitempty"`
	// PrioritizeVerb asks how good nodes are for a task.
	// +optional
	PrioritizeVerb string `json:"prioritizeVerb,omitempty"`
	// AllocateFuncVerb tells that a node is reserved for a task, and may refuse.
	// +optional
	AllocateFuncVerb string `json:"allocateFuncVerb,omitempty"`
	// DeallocateFuncVerb tells that a node is no longer reserved for a task.
	// +optional
	DeallocateFuncVerb string `json:"deallocateFuncVerb,omitempty"`
	// Ignorable: a failing extender has no opinion, instead of one against everything.
	// +optional
	Ignorable bool `json:"ignorable,omitempty"`
	// ManagedResources limit the questions to tasks with a container that names one of them; none: all tasks.
	// +optional
	ManagedResources []string `json:"managedResources,omitempty"`
	// MaxScore is the extender's score that counts as 100; those above it count the same, those below 0 as 0. At least 1. The weight of
	// the plugin in the profile should be a hundredth of it.
	// +optional
	MaxScore *int64 `json:"maxScore,omitempty"`
}

// ExtenderTLSConfig says how TLS is spoken to an extender. Its names are those of kube-scheduler's own extenders. Files are PEM, and are read when the
// extender is asked first, and again while the scheduler runs.
type ExtenderTLSConfig struct {
	// Insecure: the server's certificate is not checked. Not with CAFile.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// ServerName is who the server's certificate has to be for; empty: the host of the URL.
	// +optional
	ServerName string `json:"serverName,omitempty"`
	// CertFile is the client's certificate. It goes with KeyFile.
	// +optional
	CertFile string `json:"certFile,omitempty"`
	// KeyFile is the key of CertFile.
	// +optional
	KeyFile string `json:"keyFile,omitempty"`
	// CAFile has the authorities that the server's certificate may be from; empty: those of the system.
	// +optional
	CAFile string `json:"caFile,omitempty"`
}

// SetDefaults_ExtenderArgs fills what the user left out (Volcano pkg/scheduler/plugins/extender/extender.go).
func SetDefaults_ExtenderArgs(args *ExtenderArgs) { //nolint:revive // The defaulter generator prescribes the name.
	if args.HTTPTimeout == nil {
		args.HTTPTimeout = &metav1.Duration{Duration: time.Second}
	}
	if args.MaxScore == nil {
		args.MaxScore = ptr.To[int64](100)
	}
}
