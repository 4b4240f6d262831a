// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// openers start what the user has chosen for files, by operating system.
var openers = map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}, "linux": {"xdg-open"}}

// show opens an address in a browser. The address has a secret in it, and everybody on a machine sees the arguments of its programs: the browser is
// given a file that only this user can read, which leads to it. remove removes the file.
func show(ctx context.Context, address string) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "caldera-ui-")
	if err != nil {
		return func() {}, fmt.Errorf("writing down where the page is: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, "caldera.html")
	if err := os.WriteFile(file, forward(address, ""), 0o600); err != nil {
		return remove, fmt.Errorf("writing down where the page is: %w", err)
	}
	opener, ok := openers[runtime.GOOS]
	if !ok {
		return remove, fmt.Errorf("how files are opened on %s is not known", runtime.GOOS)
	}
	command := exec.CommandContext(ctx, opener[0], append(opener[1:], file)...)
	if err := command.Start(); err != nil {
		return remove, fmt.Errorf("starting %s: %w", opener[0], err)
	}
	go func() { _ = command.Wait() }() // It may be the browser itself, or only have told it.
	return remove, nil
}

// forward is a document that leads to an address at once. An answer that redirects would not do: after a step that another site has begun, browsers
// keep a strict cookie to themselves. Browsers ask for an icon of each page, and are told of one that they may have.
func forward(address, icon string) []byte {
	if icon != "" {
		icon = `<link rel="icon" href="` + html.EscapeString(icon) + `">`
	}
	return fmt.Appendf(nil, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">%[2]s`+
		`<title>Caldera</title><meta http-equiv="refresh" content="0;url=%[1]s"></head><body><p><a href="%[1]s">Caldera</a></p></body></html>`,
		html.EscapeString(address), icon)
}
