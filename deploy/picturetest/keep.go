// Package picturetest stores the pictures of pages that tests take for the documentation.
package picturetest

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
)

// Keep checks that a picture is not empty and has at most the given number of bytes, and writes it to a directory,
// unless dir is "".
func Keep(t *testing.T, dir, name string, picture []byte, most int) {
	t.Helper()
	shown, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	drawn, colors := paletted(shown)
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, drawn); err != nil {
		t.Fatal(err)
	}
	if t.Logf("%v, %d colors, %d bytes", shown.Bounds(), colors, small.Len()); colors < 20 || small.Len() > most {
		t.Errorf("the picture has %d colors and %d bytes", colors, small.Len())
	}
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), small.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// paletted returns a picture reduced to 256 colors, which shrinks it to a third, and the number of colors before.
func paletted(shown image.Image) (drawn *image.Paletted, colors int) {
	count, bounds := map[color.RGBA]int{}, shown.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(shown.At(x, y)).(color.RGBA) }
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			count[at(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	palette, nearest := chosen(frequent)
	drawn = image.NewPaletted(bounds, palette)
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			drawn.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	return drawn, len(count)
}

// chosen returns a palette of at most 256 colors and, for each color, its nearest color in the palette. Of similar
// colors, it takes the most frequent. It merges only as many as necessary, so that the rarest color, such as that of a
// word, keeps its hue.
func chosen(frequent []color.RGBA) (palette color.Palette, nearest map[color.RGBA]uint8) {
	for alike := 0; ; alike += 2 {
		palette, nearest = nil, map[color.RGBA]uint8{}
		for _, c := range frequent {
			i := palette.Index(c)
			if len(palette) == 0 || distance(c, palette[i].(color.RGBA)) > alike*alike {
				i, palette = len(palette), append(palette, c)
			}
			if len(palette) > 256 {
				break
			}
			nearest[c] = uint8(i)
		}
		if len(palette) <= 256 {
			return palette, nearest
		}
	}
}

func distance(a, b color.RGBA) int {
	r, g, bl := int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B)
	return r*r + g*g + bl*bl
}
