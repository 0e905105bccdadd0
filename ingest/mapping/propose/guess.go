package propose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rewardwatch/rewardwatch/ingest/mapping"
)

// The functions in this file find roles by signs that are less reliable than the full name of a place.

// guessed reports whether a place may have a role although its full name is not among the names of that role.
func guessed(field string, p *place) bool {
	words := wordsOf(p)
	last := words[len(words)-1]
	amount := withoutUnit(words)
	switch field {
	case "policy": // not device_model, which has several values
		things := []string{"device", "phone", "car", "vehicle", "machine", "hardware", "camera", "engine", "robot", "sensor"}
		return len(words) > 1 && slices.Contains([]string{"model", "policy", "strategy", "algorithm"}, last) && len(p.values) == 1 && !slices.Contains(things, words[0])
	case "policy_version": // such as bot_version or controller_build
		return len(words) == 2 && slices.Contains([]string{"version", "ver", "build", "revision", "checkpoint", "ckpt", "weights"}, last) && (words[0] == "agent" || slices.Contains(roleOf("policy").names, words[0]))
	case "reward":
		return len(words) > 1 && slices.Contains([]string{"reward", "profit", "margin", "pnl", "revenue", "earnings"}, amount[len(amount)-1]) && !isDerived(words)
	case "outcomes.":
		if slices.Contains([]string{"human", "user", "customer", "rater", "annotator", "labeler", "reviewer", "expert"}, words[0]) && slices.Contains([]string{"rating", "score", "preference"}, last) {
			return true
		}
		spent := slices.Contains([]string{"watch", "dwell", "play", "listen", "engagement", "session"}, words[0]) && slices.Contains([]string{"time", "minutes", "seconds", "ms", "duration"}, last)
		earned := last == "value" && len(words) == 2 && slices.Contains([]string{"conversion", "order", "basket", "purchase", "booking", "sale"}, words[0])
		return spent || earned || len(words) > 1 && slices.Contains([]string{"sold", "sales", "orders", "bookings", "purchases", "clicks", "conversions", "margin", "profit", "revenue"}, amount[len(amount)-1]) && !isDerived(words)
	case "action":
		set := p.kind() == isNumber && slices.Contains([]string{"setpoint", "dose", "bid", "multiplier"}, amount[len(amount)-1]) && !isDerived(words)
		return p.kind() == isText && isChosen(p) || set || isChoice(p) && isChosen(p) && !isMeasure(words)
	case "action_prob": // of a route, or of the chosen option
		return len(words) == 2 && slices.Contains([]string{"prob", "probability", "propensity"}, last) && (isChosen(p) || slices.Contains(roleOf("action").names, words[0]))
	}
	return false
}

// hasUnit reports whether the name of a place ends with a unit.
func hasUnit(p *place) bool {
	words := wordsOf(p)
	return len(withoutUnit(words)) < len(words)
}

// isMeasure reports whether the words name a measurement of a thing, rather than the thing itself.
func isMeasure(words []string) bool {
	return slices.Contains([]string{
		"distance", "time", "wait", "delay", "latency", "duration", "seconds", "cost", "price", "score", "value", "load", "count", "rank", "position", "age", "size",
	}, withoutUnit(words)[len(withoutUnit(words))-1])
}

// withoutUnit returns the words of a name without the unit at the end, such as setpoint for setpoint_mw.
func withoutUnit(words []string) []string {
	units := []string{
		"eur", "usd", "gbp", "cents", "cpm", "cpc", "cpa", "w", "kw", "mw", "wh", "kwh", "mwh", "v", "amps", "hz", "rpm", "nm", "m", "mm", "cm", "km", "mps", "kmh", "kg", "mg", "ml",
		"l", "c", "k", "degc", "celsius", "deg", "rad", "bar", "kpa", "pct", "percent", "ms", "s",
	}
	if n := len(words); n > 1 && slices.Contains(units, words[n-1]) {
		return words[:n-1]
	}
	return words
}

// isCost reports whether a place is named after the cost of a task, rather than the cost of running a model.
func isCost(p *place) bool {
	words := wordsOf(p)
	if len(words) < 2 || !slices.Contains([]string{"cost", "costs", "regret", "penalty"}, words[len(words)-1]) {
		return false
	}
	return !isDerived(words) && !slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains([]string{"token", "tokens", "llm", "api", "request", "compute", "model", "usd", "unit", "price"}, word)
	})
}

// isAmount reports whether a place is named after an amount, and has many distinct whole values.
func isAmount(p *place) bool {
	return p.kind() == isNumber && p.whole && len(p.values) > mostChoices && slices.ContainsFunc(wordsOf(p), func(word string) bool {
		return slices.Contains([]string{"qty", "quantity", "amount", "allocation", "bid", "price", "dose", "setpoint", "discount"}, word)
	})
}

// isDerived reports whether the words name a number that was predicted, or computed from several numbers.
func isDerived(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains([]string{
			"predicted", "expected", "estimated", "forecast", "target", "baseline", "max", "min", "mean", "avg", "average", "median",
			"total", "sum", "cumulative", "cum", "rolling", "previous", "prev", "last", "next", "lag", "historical", "discounted",
		}, word)
	})
}

// wordsOf returns the words of the last name of a place, in lower case.
func wordsOf(p *place) []string {
	words := strings.FieldsFunc(spaced(p.names[len(p.names)-1]), func(r rune) bool { return !unicode.IsLetter(r) })
	for i := range words {
		words[i] = plain(words[i])
	}
	if len(words) == 0 {
		return []string{""}
	}
	return words
}

// Thresholds for isListed.
const (
	leastListed  = 8    // fewer options may be tried in turn
	chanceOfEven = 1e-3 // probability that random choices are at least as even
)

// isProduct reports whether a place is named after a product. A record can be about a product, or a product can be the
// choice.
func isProduct(p *place) bool {
	return slices.Contains([]string{
		"item", "itemid", "product", "productid", "sku", "skuid", "ad", "adid", "content", "contentid", "track", "trackid", "article", "articleid",
		"video", "videoid", "listing", "listingid", "offer", "offerid", "banner", "bannerid", "creative", "creativeid",
	}, lastName(p))
}

// isThing reports whether a place is named after a machine or a measurement at one. Only text identifies such machines.
func isThing(p *place) bool {
	return slices.Contains([]string{"warehouse", "depot", "junction", "pump", "battery", "greenhouse", "boiler", "chiller"}, lastName(p))
}

// isRun reports whether a place is named after an episode, or after a training run with many episodes.
func isRun(p *place) bool {
	return slices.Contains([]string{"run", "runid", "rollout", "attempt", "lauf"}, lastName(p))
}

// fewestRuns is the minimum number of runs in a sample that are taken for episodes. Fewer may be training runs.
const fewestRuns = 5

// endsOnce reports whether the runs at a place are episodes: there are several, and no more ends than runs.
func (t *table) endsOnce(p *place) bool {
	if len(p.values) < fewestRuns {
		return false
	}
	for _, q := range t.order {
		if isAny(roleOf("terminated").names, q) && (q.kind() == isTruth || q.zeroOne) {
			return q.values["true"]+q.values["1"] <= len(p.values)
		}
	}
	return true
}

// isListed reports whether the values of a place occur equally often, as they do if each product or machine has one
// record per hour. The frequencies of choices, even of uniformly random ones, differ more. The test is the left tail of
// Pearson's chi-squared statistic.
func isListed(p *place) bool {
	k := len(p.values)
	if k < leastListed || k == maxDistinct || p.n < 2*k {
		return false
	}
	expected, statistic := float64(p.n)/float64(k), 0.
	for _, n := range p.values {
		statistic += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	return distuv.ChiSquared{K: float64(k - 1)}.CDF(statistic) < chanceOfEven
}

// mostNumbersOfAction is the maximum number of numbers in an object that is an action.
const mostNumbersOfAction = 32

// command looks for an action that is an object, such as a velocity. The action is the text with few distinct values in
// it, or else its numbers.
func (f *finder) command() {
	if f.has("action") || f.inner != nil || f.theirs != nil {
		return
	}
	names := append([]string{"cmdvel", "cmd", "controls", "setpoints", "targets", "actuators", "quote", "quotes", "allocations", "weights", "knobs", "adjustments"}, roleOf("action").names...)
	for _, of := range f.outer.order {
		if of.kind() != isObject || f.taken(of) || !slices.Contains(names, lastName(of)) {
			continue
		}
		var numbers []string
		for _, p := range f.outer.order {
			inside := p.isIn(of) && p.n*10 > of.n*9
			switch k := p.kind(); {
			case inside && k == isText && len(p.values) >= 2 && len(p.values) <= mostChoices:
				f.used[of] = true
				f.line("action", mapping.Field{Source: p.source()}, f.outer.facts(p))
				return
			case inside && k == isNumber && p.min < p.max:
				numbers = append(numbers, access("record", p.names))
			}
		}
		if n := len(numbers); n > 0 && n <= mostNumbersOfAction {
			f.used[of] = true
			f.line("action", mapping.Field{Source: mapping.Source{Expression: "[" + strings.Join(numbers, ", ") + "]"}}, "the numbers that vary in "+of.path)
			return
		}
	}
}

// vector looks for an action among numbers with indexed names, such as act_0 and act_1.
func (f *finder) vector() {
	if f.has("action") || f.theirs != nil {
		return
	}
	t, from := f.outer, "record"
	if f.inner != nil {
		t, from = f.inner, "element"
	}
	prefixes := []string{"act", "action", "actions", "a", "cmd", "command", "ctrl", "control", "u", "torque"} // last, because a torque may be a measurement
	rankOf := func(p *place) int {
		prefix, _ := strings.CutSuffix(lastName(p), "0")
		return slices.Index(prefixes, prefix)
	}
	firsts := slices.DeleteFunc(slices.Clone(t.order), func(p *place) bool { return !strings.HasSuffix(lastName(p), "0") || rankOf(p) < 0 })
	slices.SortStableFunc(firsts, func(p, q *place) int { return rankOf(p) - rankOf(q) })
	for _, first := range firsts {
		prefix := strings.TrimSuffix(lastName(first), "0")
		var values []string
		for p := first; p != nil && p.kind() == isNumber && !f.taken(p) && p.n == t.records; {
			values = append(values, access(from, p.names))
			f.used[p] = true
			next := prefix + strconv.Itoa(len(values))
			i := slices.IndexFunc(t.order, func(q *place) bool { return len(q.names) == len(first.names) && lastName(q) == next })
			if p = nil; i >= 0 {
				p = t.order[i]
			}
		}
		if len(values) > 0 {
			f.line("action", mapping.Field{Source: mapping.Source{Expression: "[" + strings.Join(values, ", ") + "]"}}, "numbers with consecutive names, from "+first.path)
			return
		}
	}
}

// isMetricName reports whether a place contains names of metrics, in records with one number each.
func isMetricName(t *table, p *place) bool {
	return slices.Contains([]string{"key", "metric", "metricname", "name", "tag", "field", "variable"}, lastName(p)) && t.beside(p, "value", "val") != nil
}

// Names of lists. slates contain the chosen items; lists may also be the contents of a cart, or the available options.
var (
	slates = []string{
		"slate", "recommendations", "recommended", "recommendeditems", "recs", "shown", "shownitems", "displayed", "impressions", "ranking", "rankeditems",
		"ranked", "carousel",
	}
	lists = []string{"items", "itemids", "offers", "products", "articles", "videos", "documents", "results", "actions"}
)

// slate looks for an action among lists with the given names. The action is the first item.
func (f *finder) slate(names []string) {
	if f.has("action") || f.inner != nil || f.theirs != nil {
		return
	}
	for _, p := range f.outer.order {
		if k := p.kind(); (k == isTextList || k == isNumberList && p.wholeList) && !f.taken(p) && slices.Contains(names, lastName(p)) {
			f.used[p] = true
			f.line("action", f.computed(found{place: p}, "first(%[1]s ?? [])"), "the first of several, "+f.outer.facts(p))
			return
		}
	}
}

// costs looks for a reward among the costs of a task if nothing else is a reward: the negative of the cost. If there is
// a price, the cost is that of a product.
func (f *finder) costs() {
	if f.has("reward") || f.has("episode.r") || f.inner != nil || f.theirs != nil {
		return
	}
	isPrice := func(p *place) bool { return slices.Contains(wordsOf(p), "price") }
	for _, p := range f.outer.order {
		if p.kind() == isNumber && isCost(p) && !f.taken(p) && p.n*2 > f.outer.records && !slices.ContainsFunc(f.outer.order, isPrice) {
			f.used[p] = true
			f.line("reward", mapping.Field{Source: p.source(), Scale: -1}, "a cost, so the reward is its negative: "+f.outer.facts(p))
			return
		}
	}
}

// clicks looks for a reward among lists: the number of items that were clicked.
func (f *finder) clicks() {
	if f.has("reward") || f.has("episode.r") || f.inner != nil || f.theirs != nil {
		return
	}
	for _, p := range f.outer.order {
		lists := p.numberLists + p.textLists + p.objectLists + p.emptyLists
		isClicked := slices.ContainsFunc(wordsOf(p), func(word string) bool {
			return slices.Contains([]string{"clicked", "clicks", "liked", "likes", "purchased", "purchases", "bought", "accepted", "converted"}, word)
		})
		if isClicked && lists == p.n && lists*10 > f.outer.records*9 && !f.taken(p) {
			f.used[p] = true
			f.line("reward", f.computed(found{place: p}, "len(%[1]s ?? [])"), "the length of a list: "+f.outer.facts(p))
			return
		}
	}
}

// Seen lists the values of records with their types, for records for which no mapping can be proposed.
func Seen(records []Record) (seen []string) {
	t := newTable(parse(records))
	for _, p := range t.order {
		if p.objects == 0 {
			seen = append(seen, fmt.Sprintf("%s (%s)", p.path, p.kind()))
		}
	}
	return seen
}
