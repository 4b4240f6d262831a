// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights knows what the shipped manifests allow the scheduler's service account to do, as the API server's authorizer reads them.
package rights

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/documents"
)

// Rules are what somebody may do.
type Rules struct {
	// Own are the rules of our own roles that hold everywhere, everywhere are those and the ones of roles that every API server creates.
	Own        []rbacv1.PolicyRule
	everywhere []rbacv1.PolicyRule
	// inNamespace are the further ones by namespace.
	inNamespace map[string][]rbacv1.PolicyRule
}

// Allow reports whether a request is allowed.
func (r Rules) Allow(a authorizer.Attributes) bool {
	return rbac.RulesAllow(a, slices.Concat(r.inNamespace[a.GetNamespace()], r.everywhere)...)
}

// Granted follows every binding in some directories or files of the manifests from the scheduler's service account to rules. It is an error if a name on
// the way does not exist.
func Granted(names ...string) (Rules, error) {
	var all []runtime.Object
	for _, name := range names {
		objects, err := load(name)
		if err != nil {
			return Rules{}, err
		}
		all = append(all, objects...)
	}
	var granted Rules
	granted.inNamespace = map[string][]rbacv1.PolicyRule{}
	known, errs := knownRoles(all), []error(nil)
	for _, o := range all {
		switch o := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			errs = append(errs, checkSubjects(o.Name, o.Subjects, all))
			rules, err := known.follow(o.RoleRef, "")
			errs = append(errs, err)
			granted.everywhere = append(granted.everywhere, rules...)
			if slices.ContainsFunc(all, func(o2 runtime.Object) bool { return isRole(o2, o.RoleRef.Name) }) {
				granted.Own = append(granted.Own, rules...)
			}
		case *rbacv1.RoleBinding:
			errs = append(errs, checkSubjects(o.Namespace+"/"+o.Name, o.Subjects, all))
			rules, err := known.follow(o.RoleRef, o.Namespace)
			errs = append(errs, err)
			granted.inNamespace[o.Namespace] = append(granted.inNamespace[o.Namespace], rules...)
		}
	}
	return granted, errors.Join(errs...)
}

func isRole(o runtime.Object, name string) bool {
	role, ok := o.(*rbacv1.ClusterRole)
	return ok && role.Name == name
}

// checkSubjects complains about a binding for somebody who is not there.
func checkSubjects(binding string, subjects []rbacv1.Subject, all []runtime.Object) error {
	for _, s := range subjects {
		there := slices.ContainsFunc(all, func(o runtime.Object) bool {
			named, err := meta.Accessor(o)
			return err == nil && o.GetObjectKind().GroupVersionKind().Kind == s.Kind && named.GetNamespace() == s.Namespace && named.GetName() == s.Name
		})
		if !there {
			return fmt.Errorf("binding %s: there is no subject %v", binding, s)
		}
	}
	return nil
}

// roles are the rules of roles, by namespace/name; those of cluster roles have no namespace.
type roles map[string][]rbacv1.PolicyRule

// knownRoles are our roles, and those that every API server creates.
func knownRoles(all []runtime.Object) roles {
	known := roles{}
	for _, role := range bootstrappolicy.ClusterRoles() {
		known["/"+role.Name] = role.Rules
	}
	for namespace, created := range bootstrappolicy.NamespaceRoles() {
		for _, role := range created {
			known[namespace+"/"+role.Name] = role.Rules
		}
	}
	for _, o := range all {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			known["/"+o.Name] = o.Rules
		case *rbacv1.Role:
			known[o.Namespace+"/"+o.Name] = o.Rules
		}
	}
	return known
}

// follow returns the rules of the role that a binding in a namespace names; one for the whole cluster has none.
func (known roles) follow(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	kind := "Role"
	if namespace == "" {
		kind = "ClusterRole"
	}
	rules, ok := known[namespace+"/"+ref.Name]
	if !ok || ref.Kind != kind {
		return nil, fmt.Errorf("there is no %s %q", ref.Kind, ref.Name)
	}
	return rules, nil
}

// load decodes the objects in a directory of the manifests, or in one file.
func load(root string) (all []runtime.Object, err error) {
	err = fs.WalkDir(manifests.All, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := manifests.All.ReadFile(name)
		if err != nil {
			return err
		}
		objects, err := decode(data)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		all = append(all, objects...)
		return nil
	})
	return all, err
}

func decode(data []byte) ([]runtime.Object, error) {
	var all []runtime.Object
	for document, err := range documents.In(data) {
		if err != nil {
			return nil, err
		}
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}
