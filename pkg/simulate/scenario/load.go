// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// document is one document of a file.
type document struct {
	file string
	// number counts from 1, line is where it begins, item the place in a List, from 1; 0: not in a List.
	number, line, item int
	data               []byte
}

// String says where the document is.
func (d document) String() string {
	where := fmt.Sprintf("%s, document %d (line %d)", d.file, d.number, d.line)
	if d.item > 0 {
		where += fmt.Sprintf(", item %d", d.item)
	}
	return where
}

// Load reads a file, or the *.yaml and *.yml files of a directory in the order of their names. It reports all that is
// wrong at once.
func Load(path string) ([]Sourced, error) {
	files := []string{path}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario: %w", err)
	}
	if info.IsDir() {
		if files, err = yamlFiles(path); err != nil {
			return nil, err
		}
	}
	var objects []Sourced
	var errs []error
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the scenario: %w", err)
		}
		read, err := Read(file, data)
		objects, errs = append(objects, read...), append(errs, err)
	}
	return objects, errors.Join(errs...)
}

// yamlFiles lists the YAML files of a directory.
func yamlFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario: %w", err)
	}
	var files []string
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); !entry.IsDir() && (ext == ".yaml" || ext == ".yml") {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("reading the scenario: directory %s has no *.yaml file", dir)
	}
	return files, nil
}

// Sourced is an object and where it was read.
type Sourced struct {
	Object
	Source string
}

// Read reads the documents of one file.
func Read(file string, data []byte) ([]Sourced, error) {
	var objects []Sourced
	var errs []error
	for _, d := range split(file, data) {
		read, err := d.decode()
		objects, errs = append(objects, read...), append(errs, err)
	}
	return objects, errors.Join(errs...)
}

// split cuts a file into its documents, and leaves out those that say nothing.
func split(file string, data []byte) []document {
	var documents []document
	d := document{file: file, line: 1}
	end := func() {
		if !d.empty() {
			d.number = len(documents) + 1
			documents = append(documents, d)
		}
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if rest, ok := bytes.CutPrefix(line, []byte("---")); ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n")) {
			end()
			d = document{file: file, line: number}
		}
		d.data = append(d.data, line...)
	}
	end()
	return documents
}

// empty reports whether a document holds nothing but blanks, comments and separators.
func (d document) empty() bool {
	for line := range strings.Lines(string(d.data)) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// decode reads the objects of a document: one, or the items of a List.
func (d document) decode() ([]Sourced, error) {
	// Line numbers in the parser's messages are those of the file.
	padded := append(bytes.Repeat([]byte("\n"), d.line-1), d.data...)
	data, err := yaml.YAMLToJSONStrict(padded)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	objects, err := d.decodeJSON(data)
	if err == nil {
		return objects, nil
	}
	// "y" or "no" is a bool to kubectl's parser and a string by YAML 1.2. Where a bool will not do the string is meant.
	var content any
	if newer := yamlv3.Unmarshal(padded, &content); newer == nil {
		if data, newer = json.Marshal(content); newer == nil {
			if objects, newer := d.decodeJSON(data); newer == nil {
				return objects, nil
			}
		}
	}
	return nil, err
}

// decodeJSON reads the objects of a document that was turned into JSON.
func (d document) decodeJSON(data []byte) ([]Sourced, error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(data, &meta); err != nil {
		return nil, fmt.Errorf("%s: not an object with apiVersion and kind", d)
	}
	if meta.APIVersion == "v1" && meta.Kind == "List" {
		return d.items(data)
	}
	if meta.Kind == "" || meta.APIVersion == "" {
		return nil, fmt.Errorf("%s: apiVersion %q and kind %q say nothing: write both", d, meta.APIVersion, meta.Kind)
	}
	if _, ok := kindOf(meta.APIVersion, meta.Kind); !ok {
		return nil, fmt.Errorf("%s: %s (%s) is not a kind that a simulation holds: remove it, or use one of %s",
			d, meta.Kind, meta.APIVersion, allKinds())
	}
	o, _, err := decoder.Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: decoding a %s: %w", d, meta.Kind, unwrapped(err))
	}
	return []Sourced{{Object: o.(Object), Source: d.String()}}, nil
}

// items reads the items of a List, as kubectl get writes them.
func (d document) items(data []byte) ([]Sourced, error) {
	var list struct {
		Items []runtime.RawExtension `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: decoding a List: %w", d, err)
	}
	var objects []Sourced
	var errs []error
	for i, item := range list.Items {
		read, err := document{file: d.file, number: d.number, line: d.line, item: i + 1}.decodeJSON(item.Raw)
		objects, errs = append(objects, read...), append(errs, err)
	}
	return objects, errors.Join(errs...)
}

// unwrapped leaves of a strict decoding error the fields it complains about.
func unwrapped(err error) error {
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		return errors.Join(strict.Errors()...)
	}
	return err
}
