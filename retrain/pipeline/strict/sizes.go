package strict

import (
	"fmt"
	"strconv"
	"strings"
)

// The least sizes, in MiB, that stages can run with: all of them run rewardwatch, and the generated scripts load PyTorch.
const (
	leastMemory    = 64
	leastOfScripts = 256
	leastStorage   = 64
)

// TooSmall returns why no training can run with these sizes, by the path of the value. scripts is whether generated scripts
// train or evaluate. A size in Ti is always enough.
func TooSmall(memory, storage string, scripts bool) map[string]string {
	out, least := map[string]string{}, leastMemory
	if scripts {
		least = leastOfScripts
	}
	if n, ok := Mebibytes(memory); ok && n < least {
		out["training.memory"] = fmt.Sprintf("must be at least %dMi, not %s, or the stages run out of memory when they start", least, memory)
	}
	if n, ok := Mebibytes(storage); ok && n < leastStorage {
		out["training.storage"] = fmt.Sprintf("must be at least %dMi, not %s: it holds the model and all other files that the stages write", leastStorage, storage)
	}
	return out
}

// MiB returns a size of memory in MiB, 0 if there is none or if nothing limits it.
func MiB(memory string, isLimited bool) int {
	if n, ok := Mebibytes(memory); ok && isLimited {
		return n
	}
	return 0
}

// Mebibytes returns a size such as 512Mi or 4Gi in MiB.
func Mebibytes(size string) (n int, ok bool) {
	unit := 1
	number, ok := strings.CutSuffix(size, "Mi")
	if !ok {
		number, ok = strings.CutSuffix(size, "Gi")
		unit = 1 << 10
	}
	n, err := strconv.Atoi(number)
	return n * unit, ok && err == nil
}
