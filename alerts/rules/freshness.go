package rules

import (
	"fmt"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
)

// burnRate is the condition of an alert: the budget of late units is spent this factor too fast, over both a long and a
// short window. The long window shows that it matters, and the short one that it continues.
type burnRate struct {
	factor      float64
	long, short string
}

// The windows and factors of Google's SRE workbook, chapter 5. The first two page if 2 % of the budget was spent within
// an hour or 5 % within six hours; the others open a ticket if 10 % was spent within a day or three days.
func burnRates() map[alerts.Severity][]burnRate {
	return map[alerts.Severity][]burnRate{
		alerts.Critical: {{14.4, "1h", "5m"}, {6, "6h", "30m"}},
		alerts.Warning:  {{3, "1d", "2h"}, {1, "3d", "6h"}},
	}
}

// delayedRatio returns the name of the recorded share of units that were judged too late over a window.
func delayedRatio(stretch string) string { return "job:rewardwatch_units_delayed:ratio_rate" + stretch }

// freshnessRecords returns the recording rules of the share of units judged too late, over every window that an alert
// uses. The share is NaN if no unit was judged; then nothing fires.
func freshnessRecords(delay string) []record {
	var records []record
	for _, stretch := range []string{"5m", "30m", "1h", "2h", "6h", "1d", "3d"} {
		records = append(records, record{
			name: delayedRatio(stretch),
			// The format of the scrape decides whether the bound is written 60 or 60.0.
			expr: fmt.Sprintf(`1 - sum by (job) (rate(%[1]s_bucket{le=~"%[2]d([.]0)?"}[%[3]s])) / sum by (job) (rate(%[1]s_count[%[3]s]))`,
				delay, alerts.FreshWithin, stretch),
		})
	}
	return records
}

// freshnessBudgetBurn alerts, with one severity, if too many units are judged too late.
func freshnessBudgetBurn(delay string, severity alerts.Severity) rule {
	const (
		summary = "Rewardwatch judges telemetry too late"
		more    = " of the episodes (or blocks) are being judged more than a minute after their last event. The objective allows 1%. Alarms are late."
	)
	var burns []string
	for _, b := range burnRates()[severity] {
		most := b.factor * (1 - alerts.FreshObjective)
		burns = append(burns, fmt.Sprintf("(%s > %.3g and %s > %.3[2]g)", delayedRatio(b.long), most, delayedRatio(b.short)))
	}
	return rule{
		alert: "FreshnessBudgetBurn", severity: severity, expr: strings.Join(burns, " or "),
		summary: summary, description: "{{ $value | humanizePercentage }}" + more,
		tests: freshnessTests(delay, severity, func(percent string, severity alerts.Severity) expectedAlert {
			return fires(summary, percent+more, "job", "rewardwatch", "severity", string(severity))
		}),
	}
}

// freshnessTests returns tests with a given share of units that are on time. What pages also opens a ticket.
func freshnessTests(delay string, severity alerts.Severity, fires func(percent string, severity alerts.Severity) expectedAlert) []ruleTest {
	if severity == alerts.Critical {
		return []ruleTest{
			{
				name: "one in five", at: "30m", series: delays(delay, "0+48x40", "0+60x40"),
				fires: []expectedAlert{fires("20%", alerts.Critical), fires("20%", alerts.Warning)},
			},
			{
				name: "one in ten", at: "30m", series: delays(delay, "0+54x40", "0+60x40"),
				fires: []expectedAlert{fires("10%", alerts.Critical), fires("10%", alerts.Warning)},
			},
		}
	}
	return []ruleTest{
		{
			name: "one in fifty, not enough to page", at: "30m", series: delays(delay, "0+588x40", "0+600x40"),
			fires: []expectedAlert{fires("2%", alerts.Warning)},
		},
		{
			name: "all late for an hour, too long ago to page", at: "100m", series: delays(delay, "0+0x60 0+60x60", "0+60x120"),
			fires: []expectedAlert{fires("61%", alerts.Warning)},
		},
		{name: "one in two hundred", at: "30m", series: delays(delay, "0+597x40", "0+600x40")},
		{name: "all judged in time", at: "30m", series: delays(delay, "0+60x40", "0+60x40")},
		{name: "none judged", at: "30m", series: delays(delay, "0+0x40", "0+0x40")},
	}
}

// delays returns test series of the units within the objective and of all units.
func delays(metric, fresh, all string) []inputSeries {
	return []inputSeries{
		ofInstance(metric+"_bucket", fmt.Sprintf(`le="%d.0"`, alerts.FreshWithin), fresh),
		ofInstance(metric+"_bucket", `le="+Inf"`, all),
		ofInstance(metric+"_count", "", all),
	}
}
