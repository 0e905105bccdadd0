package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
)

// Drift and telemetry faults are warnings when they begin, and none when they end.
func TestWhatEndsIsNoWarning(t *testing.T) {
	i := &alerts.Incident{ID: "a1"}
	for want, changes := range map[string][]alerts.Change{
		"warn": {
			{Incident: i, Alarm: &alerts.Alarm{ID: "a1"}, Fired: true},
			{Fault: &alerts.Fault{Streams: map[string]string{"return": "constant"}}},
		},
		"info": {
			{Incident: i, Alarm: &alerts.Alarm{ID: "a1", Resolved: true}},
			{Fault: &alerts.Fault{Streams: map[string]string{"return": "constant"}, Ended: true}},
			{Incident: i},
		},
	} {
		for k, c := range changes {
			var log bytes.Buffer
			(&App{log: zerolog.New(&log)}).report(c)
			if !strings.Contains(log.String(), `"level":"`+want+`"`) {
				t.Errorf("change %d is no %s: %s", k, want, log.String())
			}
		}
	}
}
