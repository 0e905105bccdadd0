// Package fault decides whether telemetry can be judged at all, by rules for each signal and for how the telemetry
// arrives. The rules learn their limits from the baseline.
package fault

// The rules of a telemetry fault, as users read them.
const (
	NonFinite     = "non_finite"      // NaN or infinite values in more than 1 % of the last 20 units' values, in at least two units
	Constant      = "constant"        // one value over more units, or over more steps within one, than the baseline allows by chance
	Clipped       = "clipped"         // many units end at exactly the same bound, which the baseline exceeded and never touched
	Scale         = "scale"           // ten times the baseline's scale or more, or a tenth or less, from one unit to the next
	Missing       = "missing"         // no value in 20 units in a row, for a signal that nearly all units of the baseline have
	ActionKind    = "action_kind"     // categories although the baseline has numbers, or the reverse
	Abandoned     = "abandoned"       // above 5 % of the episodes never end
	Late          = "late_steps"      // steps come after the end of their episode, above 5 % of them
	Duplicates    = "duplicates"      // events come twice, above 5 % of them
	ClockSkew     = "clock_skew"      // the times of above 5 % of the units go backward, or jump ahead and back
	Silent        = "silent"          // nothing for 10 times the baseline's largest gap, and at least 5 minutes
	EpisodesBegan = "episodes_began"  // episodes end, but the baseline consists of blocks of steps
	NoEpisodeEnds = "no_episode_ends" // steps arrive, but episodes no longer end
	Unfinished    = "unfinished"      // the share of episodes without an end differs from that in the baseline
	MixedBlocks   = "mixed_blocks"    // agents take too few steps for separate blocks, but the baseline consists of such blocks

	MostlyUnfinished = "mostly_unfinished" // more than half of the episodes have no end, as in the baseline
)

// Suspends reports whether a stream is not judged while the named rule applies to it. Duplicates are dropped and no
// detector uses the clock, so the values of such streams are right. Episodes without their late steps are still
// judged, because otherwise a policy whose steps always arrive late would never be judged. A silent stream has no
// values, and unfinished episodes are not units.
func Suspends(rule string) bool {
	switch rule {
	case Late, Duplicates, ClockSkew, Silent, NoEpisodeEnds, EpisodesBegan, MixedBlocks, Unfinished,
		MostlyUnfinished:
		return false
	}
	return true
}

// Words describes for people what a rule has found. units is the name of the group's units, such as episodes.
func Words(rule, units string) string {
	switch rule {
	case NonFinite:
		return "more than 1% of the values in the last 20 " + units + " are NaN or infinite"
	case Constant:
		return "the value stays the same for more " + units + ", or for more steps within one, than chance explains, given the baseline"
	case Clipped:
		return "many of the last 20 " + units + " end at exactly the same bound, which the baseline exceeded"
	case Scale:
		return "all values are at least 10 times as large as in the baseline, or at most a tenth as large"
	case Missing:
		return "no value in 20 " + units + " for a signal that is present in nearly all of the baseline"
	case ActionKind:
		return "actions are strings but were numbers in the baseline, or the reverse"
	case Abandoned:
		return "more than 5% of the episodes were abandoned because they never ended"
	case Duplicates:
		return "more than 5% of the events are duplicates"
	case Late:
		return "more than 5% of the steps arrived after the end of their episode, or too late"
	case ClockSkew:
		return "the timestamps of more than 5% of the " + units + " go backward, or jump ahead and back"
	case Silent:
		return "no " + units + " arrived for 10 times the largest gap in the baseline"
	case EpisodesBegan:
		return "episodes end, but the baseline consists of blocks of steps"
	case NoEpisodeEnds:
		return "steps arrive, but episodes no longer end"
	case Unfinished:
		return "the share of episodes without an end differs from the baseline; these episodes are not judged"
	case MostlyUnfinished:
		return "more than half of the episodes have no end and are not judged"
	case MixedBlocks:
		return "agents take too few steps for separate blocks, but the baseline consists of such blocks"
	}
	return rule
}
