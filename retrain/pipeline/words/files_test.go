package words

import "testing"

// Scripts that their shell cannot read have a line and a description of the error.
func TestUnreadableScripts(t *testing.T) {
	for script, want := range map[string]int{
		"#!/bin/sh\nfor x in 1 2; do\n  echo \"$x\"\ndone\n":                 0,
		"#!/bin/sh\nfor x in 1 2; do\n  echo \"$x\"\n":                       2,
		"#!/bin/sh\nwhile true; do\n  case $a in\n  1) break ;;\n  esac\n":   2,
		"#!/usr/bin/env bash\na=(1 2)\nif [[ -n $a ]]; then\n  exit 1\nfi\n": 0,
		"#!/usr/bin/env bash\na=(1 2)\nif [[ -n $a ]]; then\n  exit 1\n":     3,
		"#!/bin/sh\necho \"${VERSION:-it's none}\"\n":                        0,
		"#!/usr/bin/env python\nfor x in 1:\n  print(x\n":                    0,
		"#!/bin/sh\na=${B:-'https://c'}\nwhile true; do\n  sleep 1\n":        3,
		"for x in 1; do\n": 0,
	} {
		if line, fault := Unreadable(script); line != want || (fault == "") != (want == 0) {
			t.Errorf("line %d, want %d: %q in\n%s", line, want, fault, script)
		}
	}
}
