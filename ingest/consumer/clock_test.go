package consumer

import (
	"testing"
	"time"
)

func TestClockWatch(t *testing.T) {
	w := newClockWatch(time.Now())
	at := time.Duration(0)
	for i, c := range []struct{ slip, want time.Duration }{
		{0, 0},
		{500 * time.Millisecond, 0}, // as adjusted by a daemon
		{time.Hour, time.Hour},
		{0, 0}, // it remains where it was set
		{-time.Hour, -time.Hour},
		{-1500 * time.Millisecond, 0},
	} {
		at += 10 * time.Second
		if got := w.compare(at+c.slip+w.off, at); got != c.want {
			t.Errorf("look %d: the clock is off by %v, found %v, want %v", i, c.slip, got, c.want)
		}
	}
	now := time.Now()
	if got := newClockWatch(now).look(now.Add(time.Minute)); got != 0 {
		t.Errorf("a clock that was left alone jumped by %v", got)
	}
}
