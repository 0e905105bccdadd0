// Package schedule checks cron schedules as the orchestrators read them.
package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// oftenest is how many minutes are at least between two starts of a workflow by its schedule: GitHub starts none more
// often.
const oftenest = 5

// minutesOfDay is how many minutes a day has.
const minutesOfDay = 24 * 60

// Fault returns what is wrong with a schedule of five fields in UTC, "" if nothing is. github adds the limit of GitHub
// Actions.
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

// someDay begins the first four years in which schedules are looked at: they have a day of each month and weekday.
var someDay = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// closer reports whether two times of a schedule are less than these minutes from one another.
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

// onDaysInARow reports whether a schedule has two days that follow one another.
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
