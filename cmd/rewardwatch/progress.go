package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// progress shows what is going on in one line that it writes over; on what is no terminal it shows nothing.
type progress struct {
	out      io.Writer
	terminal bool
	shown    bool
}

func newProgress(out io.Writer) *progress {
	return &progress{out: out, terminal: isTerminal(out)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// show writes a line: what is being done, a bar where share (0 to 1) is known, and figures.
func (p *progress) show(what string, share float64, figures string) {
	if !p.terminal {
		return
	}
	const width = 24
	bar := ""
	if share > 0 {
		filled := int(min(share, 1) * width)
		bar = " [" + strings.Repeat("#", filled) + strings.Repeat(".", width-filled) + "]"
	}
	_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s%s  %s", what, bar, figures)
	p.shown = true
}

// clear removes the line, so that something else can be written.
func (p *progress) clear() {
	if p.shown {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}
