// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// mostBytes is how large a picture is at most that is a part of the repository.
const mostBytes = 150_000

// screenshot writes what is shown into a file.
func (s *scenes) screenshot(t *testing.T, file string) {
	t.Helper()
	shot, err := png.Decode(bytes.NewReader(call(t, s.browser, page.CaptureScreenshot, page.CaptureScreenshotParams{}).Data))
	if err != nil {
		t.Fatal(err)
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, fewColours(shot)); err != nil {
		t.Fatal(err)
	}
	if small.Len() > mostBytes {
		t.Errorf("%s has %d bytes, want %d at most", file, small.Len(), mostBytes)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, small.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fewColours is an image with 256 of its colours: of each sixteenth of red, green and blue the one that it has most of, then others that it has most of.
// Each other one is the nearest of them. A page has few colours and their shades at the edges of letters, so that nobody sees the difference, and the
// file is a third as large.
func fewColours(from image.Image) *image.Paletted {
	bounds := from.Bounds()
	counts := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(-cmp.Compare(counts[a], counts[b]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	seen := map[color.RGBA]bool{}
	var first, others color.Palette
	for _, c := range most {
		if kind := (color.RGBA{R: c.R >> 4, G: c.G >> 4, B: c.B >> 4}); !seen[kind] {
			seen[kind], first = true, append(first, c)
		} else {
			others = append(others, c)
		}
	}
	palette := slices.Concat(first, others)
	palette = palette[:min(len(palette), 256)]
	to, nearest := image.NewPaletted(bounds, palette), map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			i, known := nearest[c]
			if !known {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			to.SetColorIndex(x, y, i)
		}
	}
	return to
}
