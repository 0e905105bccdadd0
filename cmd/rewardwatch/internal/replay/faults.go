package replay

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// FaultRecord is a telemetry fault of a stream that began or ended. Index, TS and Unit belong to the unit at which it
// did. The offsets span the units from the beginning of the fault to that unit.
type FaultRecord struct {
	Event    string            `json:"event"` // "fault"
	State    string            `json:"state"` // "begun" or "ended"
	ID       string            `json:"id"`    // the same for its beginning and its end
	Policy   string            `json:"policy"`
	Group    map[string]string `json:"group"`
	Signal   string            `json:"signal"`
	Rule     string            `json:"rule"`
	Index    int64             `json:"index"`
	TS       *wire.Instant     `json:"ts"`
	Unit     int64             `json:"unit"`
	Evidence []string          `json:"evidence"`
	Offsets  *wire.Offsets     `json:"offsets"`
}

func faultLine(g ingest.Group, unit finding.UnitName, f alerts.StreamFault) FaultRecord {
	here := faultPlace(f)
	return FaultRecord{
		Event: "fault", State: faultState(f), ID: alerts.FaultID(g, f), Policy: g.Policy, Group: g.Map(), Signal: f.Signal,
		Rule: f.Rule, Index: here.Pos.Offset, TS: wire.At(here.TS), Unit: here.Ordinal,
		Evidence: []string{fault.Words(f.Rule, unit.Many())}, Offsets: &wire.Offsets{First: f.Since.First.Offset, Last: here.Pos.Offset},
	}
}

func faultState(f alerts.StreamFault) string {
	if f.Ended {
		return "ended"
	}
	return "begun"
}

// faultPlace returns the unit at which a fault entered its current state.
func faultPlace(f alerts.StreamFault) finding.UnitRef {
	if f.Ended {
		return f.Until
	}
	return f.Since
}

// faultText prints for people the faults that began, or ended, together: in one group, by one rule and at one unit.
func faultText(w io.Writer, g ingest.Group, unit finding.UnitName, together []alerts.StreamFault) error {
	f, p := together[0], terminal.PaintFor(w)
	var signals []string
	for _, one := range together {
		signals = append(signals, one.Signal)
	}
	head, mark := "FAULT", terminal.Red
	facts := []words.Fact{{"rule", f.Rule}, {"", fault.Words(f.Rule, unit.Many())}}
	if f.Ended {
		head, mark = "FAULT END", terminal.Green
		facts = append(facts, words.Fact{"ended at", words.Place(f.Until, unit, f.Until.Pos)})
	}
	facts = append(facts, words.Fact{"since", words.Place(f.Since, unit, f.Since.Pos)})
	if !fault.Suspends(f.Rule) {
		facts = append(facts, words.Fact{"", "no value is wrong: drift detection continues"})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s of %s\n", p.In(mark, fmt.Sprintf("%-10s", head)), terminal.Printable(strings.Join(signals, ", ")), terminal.Printable(g.String()))
	for _, fact := range facts {
		fmt.Fprintf(&b, "  %-9s %s\n", fact.Name(), terminal.Printable(fact.Value()))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// together reports whether both faults are printed as one.
func together(a, b alerts.StreamFault) bool {
	return a.Rule == b.Rule && a.Ended == b.Ended && a.Since.Ordinal == b.Since.Ordinal && a.Until.Ordinal == b.Until.Ordinal
}

// FaultCount summarizes the faults of a stream by one rule.
type FaultCount struct {
	Policy string            `json:"policy"`
	Group  map[string]string `json:"group"`
	Signal string            `json:"signal"`
	Rule   string            `json:"rule"`
	Times  int64             `json:"times"` // how often it began
	State  string            `json:"state"` // state of the last one: "begun" or "ended"
}

// faultsText lists the faults, or returns "" if there are none.
func faultsText(p terminal.Paint, faults []FaultCount) string {
	if len(faults) == 0 {
		return ""
	}
	rows := [][]string{{"POLICY", "GROUP", "SIGNAL", "TELEMETRY FAULT", "TIMES", terminal.StateColumn}}
	for _, f := range faults {
		rows = append(rows, []string{f.Policy, terminal.LabelsText(f.Group), f.Signal, f.Rule, fmt.Sprint(f.Times), f.State})
	}
	return "\n" + terminal.TableText(p, rows)
}

// faultLog counts the faults of a replay, in the order in which they first began.
type faultLog struct {
	counts []FaultCount
	places map[faultKey]int
}

type faultKey struct {
	group        ingest.Group
	signal, rule string
}

func newFaultLog() *faultLog { return &faultLog{places: map[faultKey]int{}} }

func (l *faultLog) add(g ingest.Group, f alerts.StreamFault) {
	key := faultKey{g, f.Signal, f.Rule}
	i, known := l.places[key]
	if !known {
		i = len(l.counts)
		l.places[key] = i
		l.counts = append(l.counts, FaultCount{Policy: g.Policy, Group: g.Map(), Signal: f.Signal, Rule: f.Rule})
	}
	if !f.Ended {
		l.counts[i].Times++
	}
	l.counts[i].State = faultState(f)
}

// tellFaults prints the faults that began or ended with the changes of one unit.
func (r *replay) tellFaults(changes []alerts.Change) error {
	var moved []alerts.StreamFault
	var g ingest.Group // the same for all changes of a unit
	for _, change := range changes {
		if change.Fault != nil {
			g, moved = change.Fault.Group, append(moved, change.Fault.Moved...)
		}
	}
	if len(moved) == 0 {
		return nil
	}
	counted := r.workers[g.Policy].Policy.Group(g)
	unit := counted.UnitName()
	for i, f := range moved {
		r.found = true
		r.faults.add(g, f)
		err := r.console.Print(faultLine(g, unit, f), func(w io.Writer) error {
			with := func(other alerts.StreamFault) bool { return together(f, other) }
			if slices.ContainsFunc(moved[:i], with) {
				return nil // already printed with the fault before
			}
			return faultText(w, g, unit, slices.DeleteFunc(slices.Clone(moved[i:]), func(other alerts.StreamFault) bool { return !with(other) }))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
