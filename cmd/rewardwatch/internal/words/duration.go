package words

import (
	"fmt"
	"time"
)

// Duration formats a duration in its two largest units, such as 2 days 3 hours, 20 minutes or 250 ms.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d.Round(time.Second) < time.Minute:
		return counted(d.Round(time.Second), time.Second, "second")
	case d.Round(time.Second) < time.Hour:
		return twoUnits(d, time.Minute, "minute", time.Second, "second")
	case d.Round(time.Minute) < day:
		return twoUnits(d, time.Hour, "hour", time.Minute, "minute")
	}
	return twoUnits(d, day, "day", time.Hour, "hour")
}

// twoUnits rounds to the smaller unit and omits it if it is 0.
func twoUnits(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	d = d.Round(small)
	text := counted(d, large, largeName)
	if rest := d % large; rest > 0 {
		text += " " + counted(rest, small, smallName)
	}
	return text
}

func counted(d, unit time.Duration, name string) string {
	n := d / unit
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}
