//go:build e2e && throughput

package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
)

// The size of a panel of the plot, and the space around it, in pixels.
const (
	panelWidth, panelHeight = 260.0, 180.0
	panelSpace              = 60.0
)

// growthPlot returns the points as an SVG, with a panel for each thing that grows: CPU per event, both on logarithmic
// scales.
func growthPlot(points []grown) []byte {
	var kinds []string
	top := 0.0
	for _, p := range points {
		if !slices.Contains(kinds, p.against) {
			kinds = append(kinds, p.against)
		}
		top = max(top, p.micros)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="12">`+"\n",
		panelSpace+float64(len(kinds))*(panelWidth+panelSpace), panelHeight+2*panelSpace)
	fmt.Fprintln(&b, `<rect width="100%" height="100%" fill="white"/>`)
	for i, kind := range kinds {
		var of []grown
		for _, p := range points {
			if p.against == kind {
				of = append(of, p)
			}
		}
		drawPanel(&b, panelSpace+float64(i)*(panelWidth+panelSpace), of, top)
	}
	fmt.Fprintln(&b, `</svg>`)
	return b.Bytes()
}

// drawPanel draws the points of one kind, with the left edge of the panel at x.
func drawPanel(b *bytes.Buffer, x float64, points []grown, top float64) {
	slices.SortFunc(points, func(p, q grown) int { return cmp.Compare(p.at, q.at) })
	first, last := math.Log(points[0].at), math.Log(points[len(points)-1].at)
	across := func(at float64) float64 { return x + panelWidth*(math.Log(at)-first)/max(last-first, 1e-9) }
	decades := max(1, math.Ceil(math.Log10(top)))
	up := func(micros float64) float64 { return panelSpace + panelHeight*(1-math.Log10(max(micros, 1))/decades) }
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f">us of CPU per event, against %s</text>`+"\n", x, panelSpace-20, points[0].against)
	for power := range int(decades) + 1 {
		micros := math.Pow10(power)
		y := up(micros)
		fmt.Fprintf(b, `<path d="M%.1f %.1fh%.0f" stroke="#ccc"/><text x="%.1f" y="%.1f" text-anchor="end">%.0f</text>`+"\n", x, y, panelWidth, x-6, y+4, micros)
	}
	line := "M"
	for _, p := range points {
		line += fmt.Sprintf("%.1f %.1f ", across(p.at), up(p.micros))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3"/><text x="%.1f" y="%.1f" text-anchor="middle">%.0f</text>`+"\n",
			across(p.at), up(p.micros), across(p.at), panelSpace+panelHeight+18, p.at)
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="black"/>`+"\n", line)
}
