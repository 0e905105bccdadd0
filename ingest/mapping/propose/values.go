package propose

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// timeOf returns a field that reads the place as a time, or nil if it is not a time. Times are Unix times between 2000
// and 2100, RFC 3339, and other ISO 8601 dates and times, which are taken as UTC if they have no offset.
func timeOf(p *place) *mapping.Field {
	f := &mapping.Field{Source: p.source()}
	switch p.kind() {
	case isNumber:
		f.Unit = unitOf(p.min, p.max)
	case isText:
		if p.times*10 > p.texts*9 {
			return f
		}
		if every(p, func(text string) bool { _, ok := parseAny(text, iso8601); return ok }) {
			f.Zone = "UTC"
			return f
		}
		least, most, ok := numbersIn(p)
		if !ok {
			return nil
		}
		f.Unit = unitOf(least, most)
	}
	if f.Unit == "" {
		return nil
	}
	return f
}

// Time layouts that a mapping can read without zone, and with zone.
var (
	rfc3339 = []string{time.RFC3339, "2006-01-02 15:04:05Z07:00"}
	iso8601 = append(slices.Clone(rfc3339),
		"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05-0700", "2006-01-02T15:04:05-07", "2006-01-02 15:04:05-07",
		"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02", "02.01.2006 15:04:05", "02.01.2006 15:04", "02.01.2006")
)

// parseAny parses a time in one of the layouts.
func parseAny(text string, layouts []string) (at time.Time, ok bool) {
	for _, layout := range layouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// unitOf returns the unit of Unix times in the given range, or "" if they are not times.
func unitOf(least, most float64) string {
	const year2000, year2100 = 946_684_800, 4_102_444_800
	for i, unit := range []string{"s", "ms", "us", "ns"} {
		scale := []float64{1, 1e3, 1e6, 1e9}[i]
		if least >= year2000*scale && most < year2100*scale {
			return unit
		}
	}
	return ""
}

// numbersIn returns the range of numbers that are written as text.
func numbersIn(p *place) (least, most float64, ok bool) {
	ok = every(p, func(text string) bool {
		x, err := strconv.ParseFloat(text, 64)
		if least == 0 || x < least {
			least = x
		}
		most = max(most, x)
		return err == nil
	})
	return least, most, ok
}

// isNumeral reports whether a place has numbers that are written as text.
func isNumeral(p *place) bool {
	return p.kind() == isText && every(p, func(text string) bool {
		x, err := strconv.ParseFloat(text, 64)
		return err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
	})
}

func every(p *place, is func(text string) bool) bool {
	return len(p.order) > 0 && !slices.ContainsFunc(p.order, func(text string) bool { return !is(text) })
}

// yesOrNo returns choices that map positive texts to 1, negative ones to 0, and draws to 0.5. It returns nil if there
// are other texts.
func yesOrNo(p *place) map[string]json.RawMessage {
	yes := []string{"yes", "y", "true", "click", "clicked", "like", "liked", "up", "thumbsup", "positive", "good", "success", "accepted", "converted", "pass", "passed", "win", "won", "victory", "helpful", "approved", "upvote"}
	no := []string{"no", "n", "false", "none", "ignored", "skip", "skipped", "dislike", "disliked", "down", "thumbsdown", "negative", "bad", "failure", "failed", "rejected", "fail", "loss", "lost", "lose", "defeat", "unhelpful", "declined", "downvote"}
	draws := []string{"draw", "tie", "drawn", "tied"}
	out := chosen(p, append(yes, draws...), no, "1", "0")
	half, one, zero := 0, 0, 0
	for text, value := range out {
		switch {
		case slices.Contains(draws, plain(text)):
			out[text] = json.RawMessage("0.5")
			half++
		case string(value) == "1":
			one++
		default:
			zero++
		}
	}
	if half > 0 && (one == 0 || zero == 0) {
		return nil // such as a card that is drawn
	}
	return out
}

// isResult reports whether a place describes a result rather than a decision, according to its name or values.
func isResult(p *place) bool {
	won := func(text string) bool {
		return slices.Contains([]string{"win", "won", "victory", "loss", "lost", "lose", "defeat", "draw", "drawn", "tie", "tied"}, plain(text))
	}
	return saysYesOrNo(p) && (slices.Contains([]string{"result", "outcome", "verdict"}, lastName(p)) || every(p, won))
}

// isFlag reports whether a place has both values of a flag, as booleans or as 0 and 1.
func isFlag(p *place) bool {
	return (p.kind() == isTruth || p.kind() == isNumber && p.zeroOne) && len(p.values) == 2
}

// The texts that a flag may have.
var (
	set   = []string{"true", "yes", "y", "t", "1"}
	unset = []string{"false", "no", "n", "f", "0"}
)

// isTextFlag reports whether a place has both values of a flag as text.
func isTextFlag(p *place) bool {
	return p.kind() == isText && len(p.values) == 2 && slices.ContainsFunc(p.order, func(text string) bool { return slices.Contains(set, plain(text)) }) &&
		slices.ContainsFunc(p.order, func(text string) bool { return slices.Contains(unset, plain(text)) })
}

// isCountedInText reports whether a place has whole numbers that are written as text.
func isCountedInText(p *place) bool {
	return p.kind() == isText && every(p, func(text string) bool {
		n, err := strconv.ParseUint(text, 10, 32)
		return err == nil && text == strconv.FormatUint(n, 10)
	})
}

// endOf returns a field that reads a flag as the end of an episode.
func endOf(p *place, field mapping.Field) mapping.Field {
	switch {
	case p.kind() == isNumber:
		field.Choices = map[string]json.RawMessage{"0": json.RawMessage("false"), "1": json.RawMessage("true")}
	case isTextFlag(p):
		field.Choices = map[string]json.RawMessage{}
		for _, text := range p.order {
			field.Choices[text] = json.RawMessage(strconv.FormatBool(slices.Contains(set, plain(text))))
		}
	}
	return field
}

// saysYesOrNo reports whether a place has texts that describe success and failure. Plain answers such as "true" and
// "no" are not enough, because they may answer any question.
func saysYesOrNo(p *place) bool {
	isAnswer := func(text string) bool {
		return slices.Contains([]string{"yes", "y", "true", "no", "n", "false", "none"}, plain(text))
	}
	return p.kind() == isText && len(p.values) > 1 && yesOrNo(p) != nil && !every(p, isAnswer)
}

// ended returns choices that map texts for ended episodes to true, and for ongoing ones to false. It returns nil if
// there are other texts.
func ended(p *place) map[string]json.RawMessage {
	over := []string{
		"finished", "done", "complete", "completed", "closed", "terminated", "terminal", "ended", "end", "success", "succeeded", "failed", "resolved",
	}
	open := []string{"open", "running", "inprogress", "started", "start", "active", "pending", "ongoing", "continue", "midway", "alive"}
	return chosen(p, over, open, "true", "false")
}

// chosen returns choices that map the texts in ones to one, and the texts in zeros to zero. It returns nil if there are
// other texts.
func chosen(p *place, ones, zeros []string, one, zero string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, text := range p.order {
		switch name := plain(text); {
		case slices.Contains(ones, name):
			out[text] = json.RawMessage(one)
		case slices.Contains(zeros, name):
			out[text] = json.RawMessage(zero)
		default:
			return nil
		}
	}
	return out
}

// access returns an expression for a value. The expression is nil if the value is missing.
func access(from string, names []string) string {
	out := from
	switch names[0] {
	case ofKey:
		return "key"
	case ofHeaders:
		out, names = "headers", names[1:]
	}
	for i, name := range names {
		quoted, _ := json.Marshal(name) // cannot fail for a string
		if i > 0 {
			out += "?."
		}
		out += "[" + string(quoted) + "]"
	}
	return out
}
