package words

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// exported matches the file that the stage export writes.
	exported = regexp.MustCompile(`(?:\$WORK|\$\{WORK\}|/work)"?/experience\.parquet`)
	// beforeOutput matches what is before a file that a command writes, or looks for.
	beforeOutput = regexp.MustCompile(`(?i)(?:>\|?|\btee(?: -a)?|\b(?:cp|mv|scp|rsync|ln)\s[^;&|\n]*|[\s\[]-[efrs]|-[A-Za-z]*[oO]|--?(?:out|output|dest|target|to|save|write|export)[\w-]*)[\s="']*$`)
)

// ReadsExport returns the index of the word of a command that names $WORK/experience.parquet as a file to read, or -1. A
// command that writes the file itself, or first looks whether it exists, has none. commands are those that run before it.
func ReadsExport(command []string, earlier ...[]string) int {
	for _, words := range earlier {
		if slices.ContainsFunc(words, exported.MatchString) {
			return -1 // which may write it
		}
	}
	for i, word := range command {
		at := exported.FindStringIndex(word)
		if at == nil {
			continue
		}
		before := strings.Join(append(slices.Clone(command[:i]), word[:at[0]]), " ")
		if beforeOutput.MatchString(before) || copies(command, i) {
			return -1
		}
		return i
	}
	return -1
}

// copies reports whether word i is the target of a program that copies files.
func copies(words []string, i int) bool {
	at := programOf(words)
	return at >= 0 && i == len(words)-1 && i > at+1 && slices.Contains(strings.Fields("cp mv scp rsync ln"), words[at])
}
