package ingest

import (
	"slices"
	"strings"
	"unicode"
)

// IsCalendar reports whether the name of an observation, or of its signal, is that of a clock or calendar field, such
// as observation.time.hour, is_weekend or hour_sin. Such fields are not monitored, because they change every hour or
// every day.
func IsCalendar(name string) bool {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
	for _, wave := range []string{"sin", "cos"} {
		name = strings.TrimPrefix(strings.TrimSuffix(name, wave), wave)
	}
	return slices.Contains([]string{
		"hour", "hourofday", "timeofday", "tod", "minuteofday", "hourofweek", "day", "dow", "weekday", "dayofweek", "isweekend", "weekend", "dayofmonth",
		"dayofyear", "week", "weekofyear", "month", "monthofyear", "quarter", "isholiday", "holiday",
	}, name)
}
