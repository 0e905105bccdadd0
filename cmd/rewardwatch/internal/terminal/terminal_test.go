package terminal

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

func TestTablesAlign(t *testing.T) {
	got := TableText(false, [][]string{
		{"POLICY", "STATE", "LAST"},
		{"日本語", "drift", "1"},
		{"e\u0301te\u0301", "ok", "2"}, // combining accents
		{"🤖", "warming_up", "3"},
		{"\x1b[2J\u202eevil", "", "a longer one that nothing follows"},
		{"one cell that is wider than all others"},
	})
	want := "POLICY     STATE       LAST\n" +
		"日本語     drift       1\n" +
		"e\u0301te\u0301        ok          2\n" +
		"🤖         warming_up  3\n" +
		"�[2J�evil              a longer one that nothing follows\n" +
		"one cell that is wider than all others\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTablesFitTheTerminal(t *testing.T) {
	rows := [][]string{
		{"INCIDENT", "STATE", "SIGNALS", "OPENED"},
		{"6dcbf0b8c1d2e3f4", "open", "return, reward, action, observation position", "2026-11-20T10:00:00Z"},
		{"0123456789abcdef", "closed", "reward", "2026-11-20T11:00:00Z"},
		{"a note that spans the columns and has more words than fit into one line of the table that it is in"},
	}
	got := tableWithin(70, false, rows)
	want := "" +
		"INCIDENT          STATE   SIGNALS                 OPENED\n" +
		"6dcbf0b8c1d2e3f4  open    return, reward,         2026-11-20T10:00:00Z\n" +
		"                          action, observation\n" +
		"                          position\n" +
		"0123456789abcdef  closed  reward                  2026-11-20T11:00:00Z\n" +
		"a note that spans the columns and has more words than fit into one\n" +
		"line of the table that it is in\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range strings.Lines(tableWithin(30, false, [][]string{{"key", "一二三四五六七八九十 " + strings.Repeat("x", 60)}})) {
		if Width(strings.TrimRight(line, "\n")) > 30 {
			t.Errorf("a line is wider than 30 columns: %q", line)
		}
	}
	if narrow := tableWithin(10, false, rows); !strings.Contains(narrow, "6dcbf0b8c1d2") {
		t.Errorf("of a terminal that is too narrow for any table, nothing is left: %q", narrow)
	}
}

// In a terminal that is too narrow for a table with complete IDs and times, each row has one line per cell.
func TestIDsAndTimesStayWhole(t *testing.T) {
	rows := [][]string{
		{"INCIDENT", "STATE", "SIGNALS", "OPENED"},
		{"6dcbf0b8c1d2e3f4", "open", "return, reward, action, observation position", "2026-11-20T10:00:00Z"},
		{"0123456789abcdef", "closed", "reward", "2026-11-20T11:00:00Z"},
		{"and 3 more incidents"},
	}
	got := tableWithin(40, false, rows)
	want := "" +
		"INCIDENT  6dcbf0b8c1d2e3f4\n" +
		"STATE     open\n" +
		"SIGNALS   return, reward, action,\n" +
		"          observation position\n" +
		"OPENED    2026-11-20T10:00:00Z\n" +
		"\n" +
		"INCIDENT  0123456789abcdef\n" +
		"STATE     closed\n" +
		"SIGNALS   reward\n" +
		"OPENED    2026-11-20T11:00:00Z\n" +
		"\n" +
		"and 3 more incidents\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for most := 40; most <= 120; most++ {
		text := tableWithin(most, false, rows)
		for _, whole := range []string{rows[1][0], rows[2][0], rows[1][3], rows[2][3]} {
			if !strings.Contains(text, whole) {
				t.Errorf("%d columns: %q is broken:\n%s", most, whole, text)
			}
		}
		for line := range strings.Lines(text) {
			if Width(strings.TrimRight(line, "\n")) > most {
				t.Errorf("%d columns: a line is too wide: %q", most, line)
			}
		}
	}
}

func TestProgressLine(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	p := &Progress{out: &out, terminal: true, now: func() time.Time { return now }}
	lines := func() []string {
		shown := strings.Split(out.String(), "\r\x1b[K")[1:]
		out.Reset()
		return shown
	}
	p.Reading("Replaying", 0, 0, 1000)
	p.Reading("Replaying", 10, 10, 1000) // too soon
	now = now.Add(time.Second)
	p.Reading("Replaying", 250_000, 100, 1000)
	now = now.Add(9 * time.Second)
	p.Reading("Replaying", 2_500_000, 250, 1000)
	p.Clear()
	p.Reading("Replaying", 2_500_000, 1000, 1000) // immediately, as the line was cleared
	p.Reading("Reading", 5, 5, 0)
	now = now.Add(3 * time.Second)
	p.Reading("Reading", 6000, 5000, 0)
	want := []string{
		"Replaying 0 events",
		"Replaying [##......................] 10%  250,000 events, 250,000/s",
		"Replaying [######..................] 25%  2,500,000 events, 250,000/s  30 seconds left",
		"",
		"Replaying [########################] 100%  2,500,000 events, 250,000/s",
		"Reading 5 events",
		"Reading 6,000 events, 2,000/s",
	}
	if got := lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTheAlarmOfAGuardSaysWhatItHasSeen(t *testing.T) {
	a := alerts.Alarm{Signal: "guard", Guard: &finding.Guard{Name: "unsafe", State: "hold", Limit: "no step", Why: "the first step"}}
	var b strings.Builder
	if err := AlarmText(&b, a); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"unsafe: hold": true, "the first step": true, "baseline": false, "offsets": false} {
		if got := b.String(); strings.Contains(got, text) != want {
			t.Errorf("%q is in the text: %v, want %v:\n%s", text, !want, want, got)
		}
	}
}

// A row may have more cells than the heading, also if cells are below each other.
func TestRowsLongerThanTheHeading(t *testing.T) {
	rows := [][]string{{"POLICY", "ENVIRONMENT", "STATE"}, {"checkout-ranker-of-harbour", "production-europe", "drift", "since yesterday"}}
	want := "POLICY       checkout-ranker-of-\n             harbour\nENVIRONMENT  production-europe\nSTATE        drift\n             since yesterday\n"
	if got := tableWithin(32, false, rows); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A time stays in one line, unless the line is shorter than it.
func TestTimesAreNotBroken(t *testing.T) {
	const text = "episode 701 (2026-11-20 11:02:03 UTC), record 14805 of 2026-11-20 11:02 UTC"
	for most, want := range map[int][]string{
		40: {"episode 701 (2026-11-20 11:02:03 UTC),", "record 14805 of 2026-11-20 11:02 UTC"},
		30: {"episode 701", "(2026-11-20 11:02:03 UTC),", "record 14805 of 2026-11-20", "11:02 UTC"},
		20: {"episode 701", "(2026-11-20 11:02:03", "UTC), record 14805", "of 2026-11-20 11:02", "UTC"},
	} {
		if got := wrapped(text, most); !slices.Equal(got, want) {
			t.Errorf("%d columns: %q, want %q", most, got, want)
		}
	}
}
