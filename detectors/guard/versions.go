package guard

import (
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// see notes the versions of a unit. The first known versions are not a change, even if an earlier build has counted
// units without their versions.
func (s *Set) see(v ingest.Versions, at finding.UnitRef) {
	if s.versions.Newest() == (ingest.Versions{}) {
		at.Ordinal = 0
	}
	s.versions.See(v, at)
}

// around returns the versions before and after the limit was probably first exceeded, which of them changed then,
// and how often they change. For a trip because of an incident, the versions are those of the incident, whose cause
// counts.
func (s *Set) around(t *Trip) (before, after ingest.Versions, changed []string, paces finding.Paces) {
	if t.Cause != "" {
		return t.Before, t.After, finding.ChangedVersions(t.Before, t.After), paces
	}
	onset, at := t.Onset.Ordinal, t.At.Ordinal
	before, after, changed = s.versions.Around(onset, at)
	return before, after, changed, s.versions.Paces(onset, at)
}
