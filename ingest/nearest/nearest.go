// Package nearest finds the known word that is closest to a misspelled one.
package nearest

import "iter"

// Of returns the known word with the smallest distance from word, or "" if all distances exceed half of its length. If
// several words are equally near, it returns the first.
func Of(word string, known iter.Seq[string]) string {
	best, at := "", len(word)/2+1
	for k := range known {
		if n := Distance(word, k); n < at {
			best, at = k, n
		}
	}
	return best
}

// Distance returns the Levenshtein distance: the minimum number of bytes to add, remove or replace in a to get b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := above
			if a[i] != b[j] {
				cost = 1 + min(above, row[j], row[j+1])
			}
			above, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
