package engine

import (
	"bytes"
	"os"
	"strconv"
)

// mappedFiles returns how many bytes of files, such as the program itself, are in memory, which Go does not count. It
// returns 0 if the kernel does not report it.
func mappedFiles() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	const ofFiles = 2 // its index, after the sizes of all mappings and of their resident part
	fields := bytes.Fields(text)
	if len(fields) <= ofFiles {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[ofFiles]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
