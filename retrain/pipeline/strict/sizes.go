package strict

import (
	"fmt"
	"strconv"
	"strings"
)

// Minimum sizes in MiB with which stages can run: every stage runs rewardwatch, and the generated scripts load PyTorch.
const (
	leastMemory    = 64
	leastOfScripts = 256
	leastStorage   = 64
)

// TooSmall returns why no training can run with these sizes, by the path of the value. scripts reports whether
// generated scripts train or evaluate. It does not check sizes in Ti, which are always large enough.
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

// MiB returns a memory size in MiB, or 0 if it is not set or not enforced.
func MiB(memory string, isLimited bool) int {
	if n, ok := Mebibytes(memory); ok && isLimited {
		return n
	}
	return 0
}

// Mebibytes returns the number of MiB in a size such as 512Mi or 4Gi. ok is false for any other form.
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
