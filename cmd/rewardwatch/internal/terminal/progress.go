package terminal

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
)

// Progress shows what a command is doing, in a line that it overwrites. It shows nothing if the output is not a
// terminal.
type Progress struct {
	out      io.Writer
	terminal bool
	now      func() time.Time
	shown    bool
	what     string    // what the command is doing
	begun    time.Time // since when
	drawn    time.Time // when the line was last written
}

// The minimum time between two progress lines, and how long an activity must last before the remaining time is shown.
const (
	progressEvery = 100 * time.Millisecond
	progressSure  = 2 * time.Second
)

// NewProgress returns the progress of a command. Other output of the console appears above its line.
func NewProgress(c *Console) *Progress {
	c.progress = &Progress{out: c.Err, terminal: controlled(c.Err), now: time.Now}
	return c.progress
}

// Show writes a line with the activity and figures. If share (0 to 1) is known, it adds a bar and the remaining time.
// It omits a line that follows another too soon.
func (p *Progress) Show(what string, share float64, figures string) {
	if !p.begin(what) {
		return
	}
	const cells = 24
	bar, rest := "", figures
	if share > 0 {
		filled := int(min(share, 1) * cells)
		bar = fmt.Sprintf(" [%s%s]", strings.Repeat("#", filled), strings.Repeat(".", cells-filled))
		rest = strings.TrimRight(fmt.Sprintf("%.0f%%  %s  %s", 100*min(share, 1), figures, p.left(share)), " ")
	}
	line := fitted(Columns(p.out), what+bar+" "+rest, what+" "+rest)
	_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", strings.TrimRight(line, " "))
	p.shown = true
}

// fitted returns line if it fits the terminal, and otherwise as much of shorter as fits, because a line that wraps
// could not be overwritten. 0 columns means that the width is unknown.
func fitted(columns int, line, shorter string) string {
	switch {
	case columns <= 0 || Width(line) < columns:
		return line
	case Width(shorter) < columns:
		return shorter
	}
	return cut(shorter, columns-1)
}

// Reading shows how many events have been read, how fast, and how many of the total bytes; total is 0 if unknown.
func (p *Progress) Reading(what string, events, done, total int64) {
	share, figures := 0.0, Thousands(events)+" events"
	if total > 0 {
		share = float64(done) / float64(total)
	}
	if took := p.took(what).Seconds(); took > 0 {
		figures += fmt.Sprintf(", %s/s", Thousands(int64(math.Round(float64(events)/took))))
	}
	p.Show(what, share, figures)
}

// begin reports whether to write a line, and records when a new activity has begun.
func (p *Progress) begin(what string) bool {
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

// took returns how long an activity has lasted.
func (p *Progress) took(what string) time.Duration {
	if p.what != what {
		return 0
	}
	return p.now().Sub(p.begun)
}

// left estimates the remaining time at the current pace, or returns "" if it is unknown.
func (p *Progress) left(share float64) string {
	took := p.took(p.what)
	if share <= 0 || share >= 1 || took < progressSure {
		return ""
	}
	left := time.Duration(float64(took) * (1 - share) / share)
	return words.Duration(left) + " left"
}

// Clear removes the line, so that other text can be written. The next call of Show writes it again at once.
func (p *Progress) Clear() {
	if p != nil && p.shown {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
		p.shown, p.drawn = false, time.Time{}
	}
}

// Thousands formats a count with its digits in groups of three.
func Thousands(n int64) string { return words.Grouped(n) }
