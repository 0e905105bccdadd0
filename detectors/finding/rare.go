package finding

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const rareValues = " rare values"

// RareNote returns a note on how many rare values a quantity has, of those that are needed to know their rate, and
// in about how many units there will be enough.
func RareNote(quantity string, rare, known, left int, unit UnitName) string {
	return fmt.Sprintf("%s: %d of about %d%s so far; once there are that many, in about %s, a drop to half the rate can be detected reliably",
		quantity, rare, roundedUp(known), rareValues, unit.Count(roundedUp(left)))
}

// TooRareNote returns a note that a baseline has too few rare values to test for a fall of their rate, with the
// number of units that it needs.
func TooRareNote(quantity string, rare, units, enough int, unit UnitName) string {
	return fmt.Sprintf("%s: the baseline of %s contains too few%s (%d) to detect a drop in the rate; set baseline.units to about %d",
		quantity, unit.Count(int64(units)), rareValues, rare, roundedUp(enough))
}

// IsRareNote reports whether a note was returned by RareNote or TooRareNote.
func IsRareNote(note string) bool { return strings.Contains(note, rareValues) }

// roundedUp rounds a positive number up to two significant digits.
func roundedUp(n int) int64 {
	scale := math.Pow10(max(0, len(strconv.Itoa(n))-2))
	return int64(math.Ceil(float64(n)/scale) * scale)
}
