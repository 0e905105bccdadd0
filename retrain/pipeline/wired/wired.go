// Package wired finds what generated files lack that stages need to run as planned. The head of wiring.txt says how that
// file lists it.
package wired

import (
	_ "embed" // of wiring.txt
	"path"
	"strings"
	"sync"
)

//go:embed wiring.txt
var wiringText string

// wirings are what artefacts must have so that the stages run as planned, as wiring.txt lists it.
var wirings = sync.OnceValue(func() []wiring { return readWirings(wiringText) })

// wiring is what one kind of artefact must have: lines of the whole file, and lines of the block of each stage. Where a
// list has several lines together, they follow one another. In the block, STAGE is the name of the stage.
type wiring struct {
	file  string // pattern of the path
	of    string // library that the file is for; "" for any
	whole []string
	open  string // first line of the block of a stage, which ends before that of the next one
	stage []string
}

// mayGoOn ends a line of wiring.txt that goes on in the artefact.
const mayGoOn = "…\n"

// readWirings reads wiring.txt. The head of that file says how it is written.
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

// beginSection begins a section of wiring.txt and returns its list, nil if it has none.
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

// Lines returns the lines of a list that are separated by bars. A backslash before a bar makes it part of the line.
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

// Lack is what a text lacks, and the line from 1 that it belongs to.
type Lack struct {
	Line int
	What string
}

// Missing returns what the text of a generated file lacks, by its path, the library of the algorithm, and the names of
// the stages in their order.
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

// blocks finds what the block of each stage lacks.
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

// HasLine reports whether a text has a line that begins so.
func HasLine(text, line string) bool {
	return strings.HasPrefix(text, line) || strings.Contains(text, "\n"+line)
}
