package words

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// exported matches the path of the file that the export stage writes.
	exported = regexp.MustCompile(`(?:\$WORK|\$\{WORK\}|/work)"?/experience\.parquet`)
	// beforeOutput matches text that precedes a file which a command writes, or whose existence it tests.
	beforeOutput = regexp.MustCompile(`(?i)(?:>\|?|\btee(?: -a)?|\b(?:cp|mv|scp|rsync|ln)\s[^;&|\n]*|[\s\[]-[efrs]|-[A-Za-z]*[oO]|--?(?:out|output|dest|target|to|save|write|export)[\w-]*)[\s="']*$`)
)

// ReadsExport returns the index of the word in a command that refers to $WORK/experience.parquet as an input, or -1. It
// returns -1 if the command writes the file or tests whether it exists, or if an earlier command may write it.
func ReadsExport(command []string, earlier ...[]string) int {
	for _, words := range earlier {
		if slices.ContainsFunc(words, exported.MatchString) {
			return -1 // it may write the file
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

// copies reports whether word i is the destination of a program that copies files.
func copies(words []string, i int) bool {
	at := programOf(words)
	return at >= 0 && i == len(words)-1 && i > at+1 && slices.Contains(strings.Fields("cp mv scp rsync ln"), words[at])
}
