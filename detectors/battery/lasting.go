package battery

import "github.com/rewardwatch/rewardwatch/detectors/stream"

// While a policy learns, its return can fall for a few dozen episodes and recover, because its estimates are wrong for
// a while. Such a fall raises no alarm. Neither constant depends on the policy.
const (
	lastingUnits = 40 // units since a walk left 0, after which the fall that it shows is no longer short
	obviousScore = 2. // score at which a fall is not waited for, such as that of a broken learner
)

// passing is the signal whose falls are waited for.
const passing = "return"

// MayPass reports whether the stream is the return, and no branch shows at the unit with the given ordinal that the
// return has fallen by much or for long. To withhold an alarm until then can only make false alarms less frequent.
func MayPass(s *stream.Stream, ordinal int64) bool {
	return s.Signal == passing && mayPass(s.Branches, ordinal)
}

func mayPass(branches func(yield func(stream.Branch)), ordinal int64) bool {
	lasts := false
	branches(func(b stream.Branch) {
		long := !b.Moving || ordinal-b.Started >= lastingUnits // a test that does not move does not know its onset
		lasts = lasts || b.Score >= obviousScore || b.Score >= 1 && long
	})
	return !lasts
}
