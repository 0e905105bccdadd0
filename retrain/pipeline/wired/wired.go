// Package wired finds what generated files lack to run their stages as planned. The lines that they need are listed in
// wiring.txt, whose header describes its syntax.
package wired

import (
	_ "embed" // for wiring.txt
	"path"
	"strings"
	"sync"
)

//go:embed wiring.txt
var wiringText string

// wirings returns the contents of wiring.txt.
var wirings = sync.OnceValue(func() []wiring { return readWirings(wiringText) })

// wiring is the required contents of one kind of artefact: lines anywhere in the file, and lines in the block of each
// stage. An element of a list may have several lines, which must be adjacent. In blocks, STAGE stands for the name of
// the stage.
type wiring struct {
	file  string // pattern of the path
	of    string // library that the file must use; "" for any
	whole []string
	open  string // first line of a stage's block, which ends before the first line of the next block
	stage []string
}

// mayGoOn marks the end of a line in wiring.txt that may continue in the artefact.
const mayGoOn = "…\n"

// readWirings parses wiring.txt. The header of that file describes its syntax.
func readWirings(text string) []wiring {
	var all []wiring
	var list *[]string
	for line := range strings.Lines(text) {
		rest := line[1:]
		switch line[0] {
		case '@':
			key, value, _ := strings.Cut(strings.TrimSuffix(rest, "\n"), " ")
			list = beginSection(&all, key, value)
		case '-':
			*list = append(*list, rest)
		case ' ':
			(*list)[len(*list)-1] += rest
		}
	}
	for i := range all {
		x := &all[i]
		for _, list := range [][]string{x.whole, x.stage} {
			for k := range list {
				list[k] = strings.TrimSuffix(list[k], mayGoOn)
			}
		}
	}
	return all
}

// beginSection begins a section of wiring.txt, and returns the list that its lines are added to, or nil if it has none.
func beginSection(all *[]wiring, key, value string) *[]string {
	if key == "file" {
		file, library, _ := strings.Cut(value, " ")
		*all = append(*all, wiring{file: file, of: library})
		return nil
	}
	x := &(*all)[len(*all)-1]
	if key == "whole" {
		return &x.whole
	}
	x.open = strings.TrimSuffix(value+"\n", mayGoOn)
	return &x.stage
}

// Lines splits a list at its bars. A bar after a backslash is part of a line.
func Lines(list string) []string {
	if list == "" {
		return nil
	}
	list = strings.ReplaceAll(list, `\|`, "\x00")
	lines := strings.Split(list, "|")
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], "\x00", "|")
	}
	return lines
}

// Lack is something that a text lacks, and the line it belongs to, from 1.
type Lack struct {
	Line int
	What string
}

// Missing returns what a generated file lacks. library is that of the algorithm, and stages are in the order in which
// they run.
func Missing(file, library, text string, stages []string) []Lack {
	var out []Lack
	for i := range wirings() {
		x := &wirings()[i]
		if ok, _ := path.Match(x.file, file); !ok || x.of != "" && x.of != library {
			continue
		}
		for _, line := range x.whole {
			if !HasLine(text, line) {
				out = append(out, Lack{1, "has no line " + strings.TrimSpace(line)})
			}
		}
		if x.open != "" {
			out = append(out, x.blocks(text, stages)...)
		}
	}
	return out
}

// blocks returns what the block of each stage lacks.
func (x *wiring) blocks(text string, stages []string) []Lack {
	var out []Lack
	at := 0
	for i, s := range stages {
		open := "\n" + strings.ReplaceAll(x.open, "STAGE", s)
		start := strings.Index(text[at:], open)
		if start < 0 {
			out = append(out, Lack{1, "has no stage " + s + " in its place"})
			continue
		}
		start += at
		end := len(text)
		if i+1 < len(stages) {
			if next := strings.Index(text[start+1:], "\n"+strings.ReplaceAll(x.open, "STAGE", stages[i+1])); next >= 0 {
				end = start + 1 + next
			}
		}
		at = start + 1
		for _, line := range x.stage {
			line = strings.ReplaceAll(line, "STAGE", s)
			if !HasLine(text[start:end]+"\n", line) {
				out = append(out, Lack{strings.Count(text[:start], "\n") + 2, "the stage " + s + " has no line " + strings.TrimSpace(line)})
			}
		}
	}
	return out
}

// HasLine reports whether a text has a line with this prefix. The prefix may span several lines.
func HasLine(text, line string) bool {
	return strings.HasPrefix(text, line) || strings.Contains(text, "\n"+line)
}
