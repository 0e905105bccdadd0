package finding

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// UnitName is the name of a group's units: finished episodes, blocks of steps if no episode ends, or blocks of
// decisions if episodes have one step and arrive fast. The zero value stands for any unit.
type UnitName struct {
	Noun  string // "" if it is unknown
	Steps int    // steps, or decisions, of a block; 0 for other units and if unknown
	Of    string // what a block consists of; "" for steps
}

const decisions = "decisions"

// either is the noun of a unit that may be an episode or a block.
const either = "episode or block"

// EpisodesOrBlocks returns the name of units of which some may be episodes and others blocks.
func EpisodesOrBlocks() UnitName { return UnitName{Noun: either} }

// Episodes returns the name of finished episodes.
func Episodes() UnitName { return UnitName{Noun: "episode"} }

// Blocks returns the name of blocks of about the given number of steps, 0 if it is unknown. It rounds as %.0f does.
func Blocks(steps float64) UnitName {
	return UnitName{Noun: "block", Steps: int(math.RoundToEven(steps))}
}

// DecisionBlocks returns the name of blocks of the given number of decisions, 0 if it is unknown.
func DecisionBlocks(size int) UnitName { return UnitName{Noun: "block", Steps: size, Of: decisions} }

// Parts returns what a block consists of.
func (n UnitName) Parts() string { return cmp.Or(n.Of, "steps") }

// One returns the singular.
func (n UnitName) One() string {
	if n.Noun == "" {
		return "unit"
	}
	return n.Noun
}

// Many returns the plural.
func (n UnitName) Many() string {
	if n.Noun == either {
		return "episodes or blocks"
	}
	return n.One() + "s"
}

// Sized returns the plural with the size of blocks.
func (n UnitName) Sized() string {
	if n.Steps == 0 {
		return n.Many()
	}
	return fmt.Sprintf("%s of %d %s", n.Many(), n.Steps, n.Parts())
}

// Count returns a number of units with their name, such as "3 episodes".
func (n UnitName) Count(units int64) string {
	if units == 1 {
		return "1 " + n.One()
	}
	return strconv.FormatInt(units, 10) + " " + n.Many()
}

// CountSized returns a number of units with their name and the size of blocks.
func (n UnitName) CountSized(units int64) string {
	if n.Steps == 0 {
		return n.Count(units)
	}
	return fmt.Sprintf("%s of %d %s", n.Count(units), n.Steps, n.Parts())
}

// Title returns the plural as a heading.
func (n UnitName) Title() string {
	many := n.Many()
	return strings.ToUpper(many[:1]) + many[1:]
}

// CommonUnit returns a name that fits all: blocks without their size if sizes differ, and the zero value if some are
// episodes and others blocks.
func CommonUnit(names ...UnitName) UnitName {
	var common UnitName
	for i, n := range names {
		switch {
		case i == 0:
			common = n
		case n.Noun != common.Noun:
			return UnitName{}
		case n.Of != common.Of:
			common.Steps, common.Of = 0, ""
		case n.Steps != common.Steps:
			common.Steps = 0
		}
	}
	return common
}

// CountedUnit returns the name of units, of which the given number are blocks of the given steps.
func CountedUnit(units, blocks int64, steps float64) UnitName {
	switch {
	case units == 0 || 0 < blocks && blocks < units:
		return UnitName{}
	case blocks > 0:
		return Blocks(steps)
	}
	return Episodes()
}

// BlockCaveat returns the caveat of a promise that counts in blocks. Promise.UnitName reads it.
func BlockCaveat(steps float64, of string, toAlarm int) string {
	return fmt.Sprintf("no episodes have ended: blocks of %.0f steps of %s are judged, and detecting a change takes at least about %d blocks (%.0f steps)",
		steps, of, toAlarm, float64(toAlarm)*steps)
}

// DecisionCaveat returns the caveat of a promise that counts in blocks of decisions. Promise.UnitName reads it.
func DecisionCaveat(size, toAlarm int) string {
	return fmt.Sprintf("episodes have one step: blocks of %d decisions are judged, and detecting a change takes at least about %d blocks (%d decisions)",
		size, toAlarm, toAlarm*size)
}

// blockCaveat and decisionCaveat match the results of BlockCaveat, including the forms that older versions have
// saved, and of DecisionCaveat.
var (
	blockCaveat    = regexp.MustCompile(`^no episodes? (?:ends|have ended): .*\bblocks of (\d+) steps`)
	decisionCaveat = regexp.MustCompile(`^episodes have one step: blocks of (\d+) decisions`)
)

// UnitName returns the name of the promise's units. Saved state and the API contain it only as a caveat.
func (p Promise) UnitName() UnitName {
	if p.N == 0 {
		return UnitName{}
	}
	for _, c := range p.Caveats {
		if m := blockCaveat.FindStringSubmatch(c); m != nil {
			steps, _ := strconv.Atoi(m[1]) // 0 if it is too large
			return Blocks(float64(steps))
		}
		if m := decisionCaveat.FindStringSubmatch(c); m != nil {
			size, _ := strconv.Atoi(m[1])
			return DecisionBlocks(size)
		}
	}
	return Episodes()
}

// UnitNameOf is like UnitName. Without a promise, it returns the name of the unit u: an episode if it has an
// episode ID, otherwise "episode or block".
func (p Promise) UnitNameOf(u UnitRef) UnitName {
	switch {
	case p.N != 0:
		return p.UnitName()
	case u.Episode != "":
		return Episodes()
	}
	return EpisodesOrBlocks()
}

// UnitName returns the name of the units of the policy's groups.
func (s *Summary) UnitName() UnitName {
	names := make([]UnitName, len(s.Groups))
	for i := range s.Groups {
		names[i] = s.Groups[i].UnitName()
	}
	return CommonUnit(names...)
}

// UnitName returns the name of the group's units.
func (g *GroupSummary) UnitName() UnitName {
	if g.Promise.N > 0 {
		return g.Promise.UnitName()
	}
	return g.Unit
}
