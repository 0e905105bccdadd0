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
// train or evaluate.
func TooSmall(memory, storage string, scripts bool) map[string]string {
	out, least := map[string]string{}, leastMemory
	if scripts {
		least = leastOfScripts
	}
	if n, ok := mebibytes(memory); ok && n < least {
		out["training.memory"] = fmt.Sprintf("must be at least %dMi, not %s, or the stages run out of memory when they start", least, memory)
	}
	if n, ok := mebibytes(storage); ok && n < leastStorage {
		out["training.storage"] = fmt.Sprintf("must be at least %dMi, not %s: it holds the model and what else the stages write", leastStorage, storage)
	}
	return out
}

// mebibytes returns a size such as 512Mi, 4Gi or 1Ti in MiB.
func mebibytes(size string) (n int, ok bool) {
	for i, unit := range []string{"Mi", "Gi", "Ti"} {
		if number, found := strings.CutSuffix(size, unit); found {
			n, err := strconv.Atoi(number)
			return n << (10 * i), err == nil
		}
	}
	return 0, false
}
