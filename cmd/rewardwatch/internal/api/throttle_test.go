package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
)

func from(address, token string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/-/reload", nil)
	r.RemoteAddr = address
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// 7,570 guesses a second went through without a line in the log.
func TestGuessesOfTheTokenAreThrottled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	var log strings.Builder
	s := orderServer(t, &apitest.FixedOrders{})
	s.reload = func() error { return nil }
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	s.Guesses = newGuesses(func() time.Time { return now }, zerolog.New(&log))
	handler := s.Handler()
	send := func(address, token string) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, from(address, token))
		if (w.Code == http.StatusTooManyRequests) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%d with Retry-After %q", w.Code, w.Header().Get("Retry-After"))
		}
		return w.Code
	}
	codes := map[int]int{}
	for i := range 1000 {
		codes[send(fmt.Sprintf("127.0.0.2:%d", 1024+i), fmt.Sprint("guess ", i))]++
	}
	if codes[401] != guessBurst || codes[429] != 1000-guessBurst {
		t.Errorf("the guesses are answered with %v", codes)
	}
	if n := strings.Count(log.String(), "invalid token"); n == 0 || n > 5 {
		t.Errorf("%d lines in the log", n)
	}
	if wrong, late := testutil.ToFloat64(s.Guesses.Refused.WithLabelValues("wrong")), testutil.ToFloat64(s.Guesses.Refused.WithLabelValues("throttled")); wrong != guessBurst || late != 1000-guessBurst {
		t.Errorf("counted %v and %v", wrong, late)
	}
	if strings.Contains(log.String(), "guess 1") {
		t.Error("a guess is in the log")
	}
	// Who has the token is let in from elsewhere at once, and from there soon.
	if code := send("127.0.0.3:1024", apitest.SomeToken); code != 200 {
		t.Errorf("another address: %d", code)
	}
	if code := send("127.0.0.2:1024", apitest.SomeToken); code != 429 {
		t.Errorf("the same address: %d", code)
	}
	now = now.Add(2 * guessEvery)
	if code := send("127.0.0.2:1024", apitest.SomeToken); code != 200 {
		t.Errorf("the same address, later: %d", code)
	}
	// Memory is bounded, however many addresses there are.
	for i := range 3 * guessAddresses {
		s.Guesses.failedBy(from(fmt.Sprintf("127.%d.%d.%d:1", 1+i>>16, i>>8&255, i&255), "x"), "token")
	}
	if len(s.Guesses.failed) > guessAddresses {
		t.Errorf("%d addresses are remembered", len(s.Guesses.failed))
	}
}
