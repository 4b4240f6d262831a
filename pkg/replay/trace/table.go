// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// table is a CSV file whose first line names the columns.
type table struct {
	file    string
	columns map[string]int
	reader  *csv.Reader
	record  []string
	line    int
	// err is the first thing that was wrong with the record.
	err error
}

// each reads a file, compressed if its name ends in .gz, and calls read with each record. An error names the file, the line, the column, and what
// to change.
func each(file string, columns []string, read func(*table)) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("reading a trace: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var in io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		unzipped, err := gzip.NewReader(f)
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		in = unzipped
	}
	t := &table{file: file, columns: map[string]int{}, reader: csv.NewReader(in)}
	t.reader.ReuseRecord = true
	header, err := t.reader.Read()
	if err != nil {
		return fmt.Errorf("reading the names of the columns of %s: %w", file, err)
	}
	for i, name := range header {
		// Some programs begin a file with a mark of its encoding.
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		if _, ok := t.columns[name]; ok {
			return fmt.Errorf("%s has two columns %q: remove one", file, name)
		}
		t.columns[name] = i
	}
	for _, name := range columns {
		if _, ok := t.columns[name]; !ok {
			return fmt.Errorf("%s has no column %q: it needs %s", file, name, strings.Join(columns, ", "))
		}
	}
	for {
		if t.record, err = t.reader.Read(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		t.line, _ = t.reader.FieldPos(0)
		if read(t); t.err != nil {
			return t.err
		}
	}
}

// text is the value of a column; empty when there is no such column.
func (t *table) text(column string) string {
	i, ok := t.columns[column]
	if !ok {
		return ""
	}
	// The record is used again.
	return strings.TrimSpace(strings.Clone(t.record[i]))
}

// number is a whole number in a range.
func (t *table) number(column string, least, most int64) int64 {
	n, err := strconv.ParseInt(t.text(column), 10, 64)
	if err != nil || n < least || n > most {
		t.refuse(column, fmt.Sprintf("write a whole number from %d to %d", least, most))
	}
	return n
}

// refuse notes what is wrong with the value of a column.
func (t *table) refuse(column, change string) {
	if t.err == nil {
		t.err = fmt.Errorf("%s, line %d: %s is %q: %s", t.file, t.line, column, t.text(column), change)
	}
}
