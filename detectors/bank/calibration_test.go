package bank

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Whether baselines are calibrated in the background or by the owner, the same units lead to the same findings in the
// same order, and to the same state.
func TestBackgroundCalibrationFindsTheSame(t *testing.T) {
	run := func(background bool) ([]finding.Finding, []byte) {
		p := newBank(episodes(2000))
		if background {
			p.InBackground()
		}
		a := newAgent(210)
		found := a.feed(p, 620)
		a.mean = -1
		found = append(found, a.feed(p, 60)...)
		p.Publish() // during a calibration, the last summary is shown
		p.Tick(time.Time{})
		found = append(found, p.Settle()...)
		var state bytes.Buffer
		if err := p.Snapshot(&state); err != nil {
			t.Fatal(err)
		}
		return found, state.Bytes()
	}
	found, state := run(false)
	again, stateAgain := run(true)
	if len(found) < 5 || !reflect.DeepEqual(found, again) {
		t.Errorf("%d findings in the background, %d by the owner", len(again), len(found))
	}
	if len(state) != len(stateAgain) {
		t.Errorf("%d bytes of state in the background, %d by the owner", len(stateAgain), len(state))
	}
}

// Units of a group that waits for its calibration are applied, but the bank cannot be saved. Units that wait because
// the bank drains are not applied.
func TestUnitsThatWait(t *testing.T) {
	p := newBank(episodes(2000))
	p.InBackground()
	a := newAgent(211)
	for range 100 {
		p.Observe(a.unit(), time.Time{})
	}
	if !p.Calibrating() {
		t.Fatal("no calibration at 100 units")
	}
	p.Observe(a.unit(), time.Time{})
	p.Drain(true)
	p.Observe(a.unit(), time.Time{})
	if units, bytes := p.Pending(); units != 2 || bytes == 0 {
		t.Errorf("%d units wait in %d bytes, want 2", units, bytes)
	}
	if last := p.Applied()[0]; last.Pos.Offset != 100 {
		t.Errorf("applied up to %d, want 100, which waits for its group", last.Pos.Offset)
	}
	for p.Calibrating() {
		<-p.Calibrated()
		p.Proceed()
	}
	if units, _ := p.Pending(); units != 1 || p.Applied()[0].Pos.Offset != 100 {
		t.Errorf("%d units wait while the bank drains, want 1", units)
	}
	p.Settle()
	if last := p.Applied()[0]; last.Pos.Offset != 101 || p.Calibrating() {
		t.Errorf("applied up to %d after settling, want 101", last.Pos.Offset)
	}
	if units, bytes := p.Pending(); units+int(bytes) > 0 || len(p.JudgedLate()) != 2 {
		t.Errorf("%d units wait in %d bytes once the bank has settled", units, bytes)
	}
}

func TestCalibrationsAreKept(t *testing.T) {
	kept := budget.NewCalibrations()
	var promises []finding.Promise
	for range 2 {
		p := newBank(episodes(2000))
		p.Share(kept)
		newAgent(212).feed(p, 100)
		promises = append(promises, p.groups[0].Promise)
	}
	if n := kept.Len(); n != 1 {
		t.Errorf("%d calibrations of the same baseline", n)
	}
	if !reflect.DeepEqual(promises[0], promises[1]) || promises[0].Allowance == 0 {
		t.Errorf("the same baseline promises %+v and %+v", promises[0], promises[1])
	}
}
