package alerts

import (
	"fmt"
	"strings"
)

// The objective of the service's own freshness: so large a share of the units is judged within so many seconds of its last event,
// over thirty days.
const (
	FreshWithin    = 60 // a bound of the buckets of the histogram of delays
	freshObjective = 0.99
)

// burnRate is how many times too fast the budget of such units is spent, over a long and a short stretch, for an alert: the long one
// shows that it matters, the short one that it goes on.
type burnRate struct {
	factor      float64
	long, short string
}

// The stretches and factors of Google's SRE workbook, chapter 5: by the first two a page comes when 2 % of the budget was spent
// within an hour or 5 % within six, by the others a ticket when 10 % was within a day or three.
func burnRates() map[Severity][]burnRate {
	return map[Severity][]burnRate{
		Critical: {{14.4, "1h", "5m"}, {6, "6h", "30m"}},
		Warning:  {{3, "1d", "2h"}, {1, "3d", "6h"}},
	}
}

// delayedRatio names the recorded share of the units that were judged too late over a stretch.
func delayedRatio(stretch string) string { return "job:rewardwatch_units_delayed:ratio_rate" + stretch }

// freshnessRecords record the share of units judged too late over every stretch that an alert looks at. NaN where no unit was judged, which
// fires nothing.
func freshnessRecords(delay string) []record {
	var records []record
	for _, stretch := range []string{"5m", "30m", "1h", "2h", "6h", "1d", "3d"} {
		records = append(records, record{
			name: delayedRatio(stretch),
			// The bound is written 60 or 60.0, by the format of the scrape.
			expr: fmt.Sprintf(`1 - sum by (job) (rate(%[1]s_bucket{le=~"%[2]d([.]0)?"}[%[3]s])) / sum by (job) (rate(%[1]s_count[%[3]s]))`,
				delay, FreshWithin, stretch),
		})
	}
	return records
}

// freshnessBudgetBurn is the rule of one severity for units that are judged too late too often.
func freshnessBudgetBurn(delay string, severity Severity) rule {
	const (
		summary = "Rewardwatch judges units too late"
		more    = " of the units are judged more than a minute after their last event, above the 1 % of the objective and for long enough to spend its budget: alarms come late."
	)
	var burns []string
	for _, b := range burnRates()[severity] {
		most := b.factor * (1 - freshObjective)
		burns = append(burns, fmt.Sprintf("(%s > %.3g and %s > %.3[2]g)", delayedRatio(b.long), most, delayedRatio(b.short)))
	}
	return rule{
		alert: "FreshnessBudgetBurn", severity: severity, expr: strings.Join(burns, " or "),
		summary: summary, description: "{{ $value | humanizePercentage }}" + more,
		tests: freshnessTests(delay, severity, func(percent string, severity Severity) expectedAlert {
			return fires(summary, percent+more, "job", "rewardwatch", "severity", string(severity))
		}),
	}
}

// freshnessTests feed units so and so many of which are in time. What is grave enough for a page is for a ticket too.
func freshnessTests(delay string, severity Severity, fires func(percent string, severity Severity) expectedAlert) []ruleTest {
	if severity == Critical {
		return []ruleTest{
			{
				name: "one in five", at: "30m", series: delays(delay, "0+48x40", "0+60x40"),
				fires: []expectedAlert{fires("20%", Critical), fires("20%", Warning)},
			},
			{
				name: "one in ten", at: "30m", series: delays(delay, "0+54x40", "0+60x40"),
				fires: []expectedAlert{fires("10%", Critical), fires("10%", Warning)},
			},
		}
	}
	return []ruleTest{
		{
			name: "one in fifty, too few for a page", at: "30m", series: delays(delay, "0+588x40", "0+600x40"),
			fires: []expectedAlert{fires("2%", Warning)},
		},
		{
			name: "all for an hour, too long ago for a page", at: "100m", series: delays(delay, "0+0x60 0+60x60", "0+60x120"),
			fires: []expectedAlert{fires("61%", Warning)},
		},
		{name: "one in two hundred", at: "30m", series: delays(delay, "0+597x40", "0+600x40")},
		{name: "all in time", at: "30m", series: delays(delay, "0+60x40", "0+60x40")},
		{name: "none judged", at: "30m", series: delays(delay, "0+0x40", "0+0x40")},
	}
}

// delays are the units within the objective, and all, in a test.
func delays(metric, fresh, all string) []inputSeries {
	return []inputSeries{
		ofInstance(metric+"_bucket", fmt.Sprintf(`le="%d.0"`, FreshWithin), fresh),
		ofInstance(metric+"_bucket", `le="+Inf"`, all),
		ofInstance(metric+"_count", "", all),
	}
}
