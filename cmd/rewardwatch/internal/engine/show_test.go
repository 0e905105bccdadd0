package engine

import (
	"fmt"
	"testing"
	"time"
)

// What takes a worker 50 us takes 1 % of a core at most, until the service is 10 seconds behind.
func TestManyWorkersPublishLessOften(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int]time.Duration{
		1: time.Second, 200: time.Second, 1000: 5 * time.Second, 2000: 10 * time.Second, 50_000: 10 * time.Second,
	} {
		d := &Workers{byPolicy: map[string]*RunningWorker{}}
		for i := range workers {
			d.byPolicy[fmt.Sprint(i)] = nil
		}
		if got := d.showEvery(); got != want {
			t.Errorf("%d workers publish every %s, want %s", workers, got, want)
		}
	}
}
