package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
)

// progress shows what is going on in one line that it writes over; on what is no terminal it shows nothing.
type progress struct {
	out      io.Writer
	terminal bool
	now      func() time.Time
	shown    bool
	what     string    // is going on
	begun    time.Time // since when
	drawn    time.Time // when the line was written last
}

// Progress is written so seldom, and the time left is told once so much of it is known.
const (
	progressEvery = 100 * time.Millisecond
	progressSure  = 2 * time.Second
)

// newProgress makes the progress of what a verb does. What the console prints stands above its line.
func newProgress(c *console) *progress {
	c.progress = &progress{out: c.err, terminal: controlled(c.err), now: time.Now}
	return c.progress
}

// show writes a line: what is being done, a bar and the time left where share (0 to 1) is known, and figures. Lines that
// come too soon after another are left out.
func (p *progress) show(what string, share float64, figures string) {
	if !p.begin(what) {
		return
	}
	const cells = 24
	bar, rest := "", figures
	if share > 0 {
		filled := int(min(share, 1) * cells)
		bar = fmt.Sprintf(" [%s%s]", strings.Repeat("#", filled), strings.Repeat(".", cells-filled))
		rest = strings.TrimRight(fmt.Sprintf("%.0f %%  %s  %s", 100*min(share, 1), figures, p.left(share)), " ")
	}
	line := fitted(columns(p.out), what+bar+" "+rest, what+" "+rest)
	_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", strings.TrimRight(line, " "))
	p.shown = true
}

// fitted gives the line that a terminal has room for, or as much as it has of the shorter one: a line that wraps could not be
// written over. 0 columns are not known.
func fitted(columns int, line, shorter string) string {
	switch {
	case columns <= 0 || width(line) < columns:
		return line
	case width(shorter) < columns:
		return shorter
	}
	return cut(shorter, columns-1)
}

// reading shows how many events have been read, how fast, and how many bytes of all: 0 where that is not known.
func (p *progress) reading(what string, events, done, total int64) {
	share, figures := 0.0, thousands(events)+" events"
	if total > 0 {
		share = float64(done) / float64(total)
	}
	if took := p.took(what).Seconds(); took > 0 {
		figures += fmt.Sprintf(", %s/s", thousands(int64(math.Round(float64(events)/took))))
	}
	p.show(what, share, figures)
}

// begin reports whether a line is due, and notes when what it tells of has begun.
func (p *progress) begin(what string) bool {
	if p == nil || !p.terminal {
		return false
	}
	now := p.now()
	if p.what != what {
		p.what, p.begun, p.drawn = what, now, time.Time{}
	}
	if now.Sub(p.drawn) < progressEvery {
		return false
	}
	p.drawn = now
	return true
}

// took is for how long something has been going on.
func (p *progress) took(what string) time.Duration {
	if p.what != what {
		return 0
	}
	return p.now().Sub(p.begun)
}

// left tells how long it will still take if it goes on as it did, "" where that is not known.
func (p *progress) left(share float64) string {
	took := p.took(p.what)
	if share <= 0 || share >= 1 || took < progressSure {
		return ""
	}
	left := time.Duration(float64(took) * (1 - share) / share)
	return left.Round(time.Second).String() + " left"
}

// clear removes the line, so that something else can be written; it is due again at once.
func (p *progress) clear() {
	if p != nil && p.shown {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
		p.shown, p.drawn = false, time.Time{}
	}
}

// thousands writes a count with its digits in groups of three.
func thousands(n int64) string { return words.Grouped(n, ",") }
