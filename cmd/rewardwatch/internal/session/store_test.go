package session

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
)

// storeRig returns a store with a clock.
func storeRig() (*Store, *time.Time, *http.Request) {
	now := someTime
	s := NewStore(func() time.Time { return now })
	s.most = bounds{all: 200, ofOne: 5, ofToken: 20} // small, as filling it costs the square of its size
	return s, &now, httptest.NewRequest(http.MethodGet, "/", nil)
}

func everyone(Session) bool { return true }

// A person who logs in repeatedly ends their own oldest session, and none of others.
func TestSessionsOfOnePersonAreBounded(t *testing.T) {
	s, now, r := storeRig()
	other := s.Open(r, Person{Name: "bea", Known: true, Role: access.Viewer}, time.Hour)
	var cookies []string
	for range s.most.ofOne + 2 {
		*now = now.Add(time.Second)
		cookies = append(cookies, s.Open(r, Person{Name: "ann", Known: true, Role: access.Viewer}, time.Hour))
	}
	for i, c := range cookies {
		if _, open := s.of(c); open != (i >= 2) {
			t.Errorf("session %d is open: %v", i, open)
		}
	}
	if _, open := s.of(other); !open || len(s.List(everyone)) != s.most.ofOne+1 {
		t.Errorf("%d sessions are open, that of somebody else %v", len(s.List(everyone)), open)
	}
	*now = now.Add(time.Hour)
	if s.Open(r, Person{Name: "bea"}, time.Hour); len(s.sessions) != 1 {
		t.Errorf("%d sessions are kept", len(s.sessions))
	}
}

// A full store admits no unknown token session: it could be one that was ended. It makes room for sessions of
// providers.
func TestFullStore(t *testing.T) {
	s, now, r := storeRig()
	who, until := Person{Name: "ann"}, now.Add(time.Hour)
	for i := range s.most.all {
		if !s.admits(r, strconv.Itoa(i), "token "+strconv.Itoa(i/s.most.ofToken), who, until) {
			t.Fatalf("session %d is refused", i)
		}
	}
	s.end("7")
	if s.admits(r, "one more", "another", who, until) || s.admits(r, "7", "token 0", who, until) || !s.admits(r, "8", "token 0", who, until) {
		t.Error("a full store forgets that a session was ended")
	}
	*now = until
	if !s.admits(r, "one more", "another", who, until.Add(time.Hour)) || len(s.sessions) != 1 {
		t.Errorf("%d sessions are kept that are over", len(s.sessions))
	}
}

// The holder of one token cannot lock out others, and an ended session remains ended.
func TestSessionsOfOneTokenAreBounded(t *testing.T) {
	s, now, r := storeRig()
	who, until := Person{Name: "ann"}, now.Add(time.Hour)
	for i := range s.most.ofToken {
		if !s.admits(r, strconv.Itoa(i), "viewer", who, until) {
			t.Fatalf("session %d is refused", i)
		}
	}
	s.end("7")
	if s.admits(r, "one more", "viewer", who, until) || s.admits(r, "7", "viewer", who, until) || !s.admits(r, "8", "viewer", who, until) {
		t.Error("one more is admitted, or one that was ended, or one is not that was admitted before")
	}
	if !s.admits(r, "of an admin", "admin", who, until) {
		t.Error("another token is kept out")
	}
	*now = until
	if !s.admits(r, "the next day", "viewer", who, until.Add(time.Hour)) {
		t.Error("sessions that are over count")
	}
}

func TestWhoSeesASession(t *testing.T) {
	s, _, r := storeRig()
	ann := Person{Name: "ann", Known: true, By: ByProvider, Role: access.Approver}
	s.Open(r, ann, time.Hour)
	for name, tt := range map[string]struct {
		who  Person
		want int
	}{
		"the same":              {ann, 1},
		"an admin":              {Person{Role: access.Admin}, 1},
		"somebody else":         {Person{Name: "bea", Known: true, By: ByProvider, Role: access.Approver}, 0},
		"a token of the name":   {Person{Name: "ann", Known: true, Role: access.Approver}, 0},
		"a name that she typed": {Person{Name: "ann", Role: access.Approver}, 0},
	} {
		if got := len(s.List(Sees(tt.who))); got != tt.want {
			t.Errorf("%s sees %d sessions", name, got)
		}
	}
}
