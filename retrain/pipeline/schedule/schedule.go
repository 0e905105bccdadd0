// Package schedule checks cron schedules against the syntax and limits of the orchestrators.
package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// oftenest is the shortest interval in minutes at which GitHub starts a scheduled workflow.
const oftenest = 5

const minutesOfDay = 24 * 60

// Fault returns what is wrong with a five-field schedule in UTC, or "". github adds the limit of GitHub Actions.
func Fault(text string, github bool) string {
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	parsed, err := parser.Parse(text)
	s, ok := parsed.(*cron.SpecSchedule)
	switch {
	case strings.Contains(text, "TZ="):
		return fmt.Sprintf("must not name a time zone: schedules run in UTC. Convert the hour in %q, and remove the zone", text)
	case err != nil || !ok || strings.ContainsAny(text, "=?"):
		return fmt.Sprintf("must be a cron expression in UTC (minute, hour, day of the month, month, day of the week), not %q", text)
	case s.Next(someDay).IsZero():
		return fmt.Sprintf("must be a date that exists: the months in %q do not have that day", text)
	case closer(s, 2):
		return fmt.Sprintf("must leave enough time for training and evaluation, unlike %q, which starts a run every minute", text)
	case github && closer(s, oftenest):
		return fmt.Sprintf("must leave at least %d minutes between runs, unlike %q: GitHub Actions does not start workflows more often", oftenest, text)
	}
	return ""
}

// someDay begins the four years in which schedules are checked. They contain every date of the year, including February
// 29, and every combination of a day of the month and a weekday.
var someDay = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// closer reports whether a schedule has two times less than the given number of minutes apart.
func closer(s *cron.SpecSchedule, minutes int) bool {
	var times []int
	for t := range minutesOfDay {
		if s.Hour>>(t/60)&1 == 1 && s.Minute>>(t%60)&1 == 1 {
			times = append(times, t)
		}
	}
	for i := range times[1:] {
		if times[i+1]-times[i] < minutes {
			return true
		}
	}
	overnight := times[0] + minutesOfDay - times[len(times)-1]
	return overnight < minutes && onDaysInARow(s)
}

// onDaysInARow reports whether a schedule has two consecutive days.
func onDaysInARow(s *cron.SpecSchedule) bool {
	before := false
	for day := someDay; day.Before(someDay.AddDate(4, 0, 0)); day = day.AddDate(0, 0, 1) {
		now := s.Next(day.Add(-time.Second)).Before(day.AddDate(0, 0, 1))
		if before && now {
			return true
		}
		before = now
	}
	return false
}
