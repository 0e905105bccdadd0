//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"testing"
	"time"
)

// patience is how long a condition may take to come true. It is generous: the tests share two cores with four servers.
const patience = 4 * time.Minute

// eventually asks every 50 ms until check gives no error, and fails the test with its last one when patience runs out.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, t.Context().Err())
		}
	}
}

// reaches asks until a value has grown up to another. Patience is for its next growth, so that a slow machine takes as long as it
// takes.
func reaches(t *testing.T, what string, want float64, value func() (float64, error)) {
	t.Helper()
	best, left := math.Inf(-1), time.NewTimer(patience)
	defer left.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := value()
		if err == nil && now >= want {
			return
		}
		if err == nil && now > best {
			best = now
			left.Reset(patience)
		}
		select {
		case <-tick.C:
		case <-left.C:
			t.Fatalf("%s: no more than %g for %s: %v", what, best, patience, err)
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, t.Context().Err())
		}
	}
}

var client = &http.Client{Timeout: 10 * time.Second}

// get reads what a server answers with 200.
func get(url string) ([]byte, error) { return getWith(client, url) }

func getWith(client *http.Client, url string) ([]byte, error) {
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s: %s", url, resp.Status, body)
	}
	return body, nil
}

func getJSON(url string, into any) error {
	body, err := get(url)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("GET %s: %w in %s", url, err, body)
	}
	return nil
}

// wait passes some time, unless the test is ended.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if <-ctx.Done(); !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatal(ctx.Err())
	}
}
