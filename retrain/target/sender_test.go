package target

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A connection that is reset in the middle of the answer is a failure, even if the answer began with 200.
func TestResetInTheMiddleOfTheAnswer(t *testing.T) {
	read := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, err := io.Copy(io.Discard, req.Body)
		check(t, err)
		conn, _, err := http.NewResponseController(w).Hijack()
		check(t, err)
		_, err = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789"))
		check(t, err)
		<-read // a reset overtakes data that were sent before
		check(t, conn.(*net.TCPConn).SetLinger(0))
		check(t, conn.Close())
	}))
	defer server.Close()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() { close(read) }})
	a := line{transport: transportOf(t, Target{AllowPrivate: true})}.post(ctx, server.URL, []byte("{}"))
	if a.Result != ResultUnreachable || a.Status != 200 || !strings.Contains(a.Err, "connection reset") {
		t.Errorf("%+v, want a reset after status 200", a.Attempt)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tests := map[string]time.Duration{
		"":                                    0,
		"0":                                   0,
		"120":                                 2 * time.Minute,
		"-1":                                  0,
		"1.5":                                 0,
		"1e9":                                 0,
		"9223372036854775807":                 maxRetryAfter,
		strconv.Itoa(400 * 86400):             maxRetryAfter,
		"Sat, 21 Nov 2026 12:00:30 GMT":       30 * time.Second,
		"Saturday, 21-Nov-26 12:00:30 GMT":    30 * time.Second,
		"Sat Nov 21 12:00:30 2026":            30 * time.Second,
		"Sat, 21 Nov 2026 11:00:00 GMT":       0,
		"Thu, 21 Nov 2199 11:00:00 GMT":       maxRetryAfter,
		"2026-11-21T12:00:30Z":                0,
		"Sat, 21 Nov 2026 12:00:30 GMT, 120":  0,
		"99999999999999999999999999999999999": 0,
	}
	for value, want := range tests {
		if got := retryAfter(value, now); got != want {
			t.Errorf("retryAfter(%q) = %s, want %s", value, got, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120")
	f.Add("Sat, 21 Nov 2026 12:00:30 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		if d := retryAfter(value, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)); d < 0 || d > maxRetryAfter {
			t.Errorf("retryAfter(%q) = %s", value, d)
		}
	})
}
