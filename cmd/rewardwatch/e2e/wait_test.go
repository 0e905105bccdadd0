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

// patience is how long a condition may take to become true. It is generous, since the tests share two cores with four
// servers.
const patience = 4 * time.Minute

// eventually calls check every 50 ms until it returns no error, and fails the test with its last error when patience
// runs out.
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

// reaches waits until a value has grown to want. patience applies to each increase, so that a slow machine may take as
// long as it needs.
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

// get returns the body of a 200 response.
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

// wait waits for a duration, unless the test ends.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if <-ctx.Done(); !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Fatal(ctx.Err())
	}
}
