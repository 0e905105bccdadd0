// Package nearest finds the known word that is closest to a misspelled one.
package nearest

import "iter"

// Of returns the known word from which word differs least, or "" if each differs in half of its letters or more. Of
// several equally near words it returns the first.
func Of(word string, known iter.Seq[string]) string {
	best, at := "", len(word)/2+1
	for k := range known {
		if n := Distance(word, k); n < at {
			best, at = k, n
		}
	}
	return best
}

// Distance is how many bytes of a are added, removed or replaced to make b (Levenshtein).
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
