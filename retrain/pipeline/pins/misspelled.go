package pins

import (
	"fmt"
	"slices"
	"strings"
)

// usual are packages with names that other packages imitate.
var usual = strings.Fields("gymnasium matplotlib numpy opencv-python pandas pettingzoo scikit-learn scipy stable-baselines3 tensorboard tensorflow torch torchvision transformers")

// Misspelled returns why a requirement is a different package than it seems to be, or "" if it may be intended. It
// returns "" if the intended package is also in the list.
func Misspelled(requirement string, all []string) string {
	name, _ := NameAndVersion(requirement)
	joined := func(s string) string { return strings.ReplaceAll(s, "-", "") }
	for _, near := range usual {
		if len(name) > 4 && near != name && (joined(name) == joined(near) || slipped(name, near) || mistyped(name, near)) && pinned(near, all) == "" && !Known(Default, name) && allNewest()[name] == "" {
			return fmt.Sprintf("must be %s, not %s, which is a different package", near, name)
		}
	}
	return ""
}

// slipped reports whether a name is another one with two adjacent letters transposed, a letter doubled, or a letter
// before the last one missing. An additional digit, or another letter at the end, counts as a name of its own.
func slipped(name, of string) bool {
	short, long := name, of
	if len(name) > len(of) {
		short, long = of, name
	}
	if len(long) != len(short)+1 {
		return transposed(name, of)
	}
	i := 0
	for i < len(short) && short[i] == long[i] {
		i++
	}
	if short[i:] != long[i+1:] || long[i] >= '0' && long[i] <= '9' {
		return false
	}
	return long == of && i < len(short) || long == name && i > 0 && long[i-1] == long[i]
}

// neighbours are the rows of keys on a keyboard.
var neighbours = strings.Fields("qwertyuiop asdfghjkl zxcvbnm")

// mistyped reports whether two names differ in exactly one letter after the first, and the keys of the two letters are
// adjacent.
func mistyped(name, of string) bool {
	if len(name) != len(of) {
		return false
	}
	i := 0
	for i < len(of) && name[i] == of[i] {
		i++
	}
	return i > 0 && i < len(of) && name[i+1:] == of[i+1:] && slices.ContainsFunc(neighbours, func(row string) bool {
		return strings.Contains(row, string([]byte{name[i], of[i]})) || strings.Contains(row, string([]byte{of[i], name[i]}))
	})
}

// transposed reports whether two names differ in the order of two adjacent letters.
func transposed(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) - 1 {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}
