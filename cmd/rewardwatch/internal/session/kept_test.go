package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
)

// restarted returns the store of the next process, which finds the file of the preceding one.
func restarted(t *testing.T, path, terms string, now time.Time) *Store {
	t.Helper()
	s, _, _ := storeRig()
	s.now = func() time.Time { return now }
	s.Keep(path, terms, func(err error) { t.Error(err) })
	return s
}

func TestSessionsSurviveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.json")
	_, now, r := storeRig()
	s := restarted(t, path, "terms", *now)
	ann := Person{Name: "ann", Known: true, By: ByProvider, Role: access.Approver, Tenant: "shop"}
	open, ended, short := s.Open(r, ann, time.Hour), s.Open(r, ann, time.Hour), s.Open(r, ann, time.Minute)
	s.end(ended)
	used := New("a token", Person{Name: "bea"}, now.Add(time.Hour))
	if !s.admits(r, used, "/etc/token", Person{Name: "bea", Role: access.Admin}, now.Add(time.Hour)) {
		t.Fatal("the session of a token is refused")
	}
	id := s.List(func(s Session) bool { return s.Name == "bea" })[0].ID
	if _, err := s.End(id, everyone); err != nil {
		t.Fatal(err)
	}
	listed := s.List(everyone)

	s = restarted(t, path, "terms", now.Add(time.Minute))
	if who, in := s.of(open); !in || who != ann {
		t.Errorf("after a restart, %+v is logged in: %v", who, in)
	}
	for name, cookie := range map[string]string{"one that was ended": ended, "one that is over": short, "what the file has": hashIn(t, path), "": ""} {
		if _, in := s.of(cookie); in {
			t.Errorf("%s is a session", name)
		}
	}
	if s.admits(r, used, "/etc/token", Person{Name: "bea", Role: access.Admin}, now.Add(time.Hour)) {
		t.Error("the session of a token is no longer ended")
	}
	again := s.List(everyone)
	if len(listed) != 2 || len(again) != 1 || !slices.ContainsFunc(listed, func(s Session) bool { return s.ID == again[0].ID }) || again[0].From != r.RemoteAddr {
		t.Errorf("the sessions are %+v, and were %+v", again, listed)
	}
	s.end(open)
	if _, in := restarted(t, path, "terms", *now).of(open); in {
		t.Error("a session that has survived a restart cannot be ended for the next one")
	}
}

// hashIn returns the first hash of a cookie in a file, which only its owner may read.
func hashIn(t *testing.T, path string) string {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the mode is %v (%v), want 0600", info.Mode(), err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, hash, _ := strings.Cut(string(text), `"cookie_sha256":"`)
	return hash[:64]
}

// With a new configuration, the provider is asked again who may log in with which role. Without the provider, or with
// other terms, sessions end permanently: the old terms do not reopen them. Ended sessions remain ended.
func TestNewTermsEndSessions(t *testing.T) {
	for name, terms := range map[string][]string{
		"another role":                     {"ml: viewer"},
		"no provider, and then it is back": {"no provider", "ml: admin"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sessions.json")
			_, now, r := storeRig()
			s := restarted(t, path, "ml: admin", *now)
			cookie := s.Open(r, Person{Name: "ann", Role: access.Admin}, time.Hour)
			used := New("a token", Person{}, now.Add(time.Hour))
			s.admits(r, used, "f", Person{Role: access.Viewer}, now.Add(time.Hour))
			s.end(used)
			for _, others := range terms {
				s = restarted(t, path, others, *now)
			}
			if who, in := s.of(cookie); in {
				t.Errorf("%+v is logged in", who)
			}
			if s.admits(r, used, "f", Person{Role: access.Viewer}, now.Add(time.Hour)) {
				t.Error("an ended session is open again")
			}
		})
	}
}

// No content of the file stops the service or lets anyone in, and a full one does not exceed the limits.
func TestFilesOfSessions(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	one := func(change ...string) string {
		text := `{"id":"x","name":"ann","role":"viewer","by":"oidc","until":"2999-01-01T00:00:00Z","cookie_sha256":"` + hash + `"}`
		return strings.NewReplacer(change...).Replace(text)
	}
	many := make([]string, 250)
	for i := range many {
		many[i] = one(hash, fmt.Sprintf("%064x", i))
	}
	in := func(sessions ...string) string {
		return `{"version":1,"terms":"","sessions":[` + strings.Join(sessions, ",") + `]}`
	}
	for name, tt := range map[string]struct {
		content string
		want    int
		tells   bool
	}{
		"good":                {in(one()), 1, false},
		"empty":               {"", 0, true},
		"cut short":           {in(one())[:100], 0, true},
		"no JSON":             {"\x00\x01", 0, true},
		"a newer format":      {strings.Replace(in(one()), `"version":1`, `"version":2`, 1), 0, false},
		"no hash":             {in(one(hash, "")), 0, false},
		"a short hash":        {in(one(hash, "abab")), 0, false},
		"no hexadecimal":      {in(one(hash, strings.Repeat("xy", 32))), 0, false},
		"a role that is none": {in(one("viewer", "root")), 0, false},
		"a role of programs":  {in(one("viewer", "agents")), 0, false},
		"another way":         {in(one("oidc", "magic")), 0, false},
		"an open token":       {in(one("oidc", "token")), 0, false}, // treated as an ended one
		"too many":            {in(many...), 200, false},
		"too long":            {strings.Repeat(" ", maxKept+1), 0, true},
	} {
		path := filepath.Join(t.TempDir(), "sessions.json")
		if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		s, _, r := storeRig()
		var told []error
		s.Keep(path, "", func(err error) { told = append(told, err) })
		if got := len(s.List(everyone)); got != tt.want || (len(told) > 0) != tt.tells {
			t.Errorf("%s: %d sessions, and %v", name, got, told)
		}
		if cookie := s.Open(r, Person{Name: "bea", Role: access.Viewer}, time.Hour); len(restarted(t, path, "", someTime).List(everyone)) == 0 {
			t.Errorf("%s: the next login is not kept: %s", name, cookie)
		}
	}
}

// A full disk does not prevent logins, and is reported.
func TestSessionsThatCannotBeKept(t *testing.T) {
	s, _, r := storeRig()
	var told []error
	s.Keep(filepath.Join(t.TempDir(), "missing", "sessions.json"), "", func(err error) { told = append(told, err) })
	cookie := s.Open(r, Person{Name: "ann", Role: access.Viewer}, time.Hour)
	if _, in := s.of(cookie); !in || len(told) != 1 {
		t.Errorf("logged in: %v, and %v", in, told)
	}
	s.end(cookie)
	if _, in := s.of(cookie); in || len(told) != 2 {
		t.Errorf("after the logout: %v, and %v", in, told)
	}
	cookie = s.Open(r, Person{Name: "ann", Role: access.Viewer}, time.Hour)
	ended, err := s.End(s.List(everyone)[0].ID, everyone)
	if _, in := s.of(cookie); in || ended.Name != "ann" || !errors.Is(err, ErrNotSaved) || len(told) != 4 {
		t.Errorf("after the end of %+v: %v, %v, and %v", ended, in, err, told)
	}
}

// Sessions that were reported to have ended do not return with a second restart.
func TestAFileThatCannotBeReadIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.json")
	if err := os.WriteFile(path, []byte(`{"version":1,`), 0o600); err != nil {
		t.Fatal(err)
	}
	told := 0
	for range 2 {
		s, _, _ := storeRig()
		s.Keep(path, "", func(error) { told++ })
	}
	if told != 1 {
		t.Errorf("two starts with the file tell %d times that it cannot be read", told)
	}
}

// A session that had to make room for a token's session remains ended.
func TestSessionsThatMadeRoomStayEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.json")
	_, now, r := storeRig()
	s := restarted(t, path, "terms", *now)
	var cookies []string
	for i := range s.most.all {
		cookies = append(cookies, s.Open(r, Person{Name: fmt.Sprint("p", i), Role: access.Viewer}, time.Hour))
	}
	if !s.admits(r, New("a token", Person{}, now.Add(time.Hour)), "f", Person{Role: access.Viewer}, now.Add(time.Hour)) {
		t.Fatal("a full store of sessions of a provider refuses one of a token")
	}
	next := restarted(t, path, "terms", *now)
	ended := 0
	for _, c := range cookies {
		_, before := s.of(c)
		if !before {
			ended++
		}
		if _, after := next.of(c); after != before {
			t.Errorf("a session was open: %v, and after the restart: %v", before, after)
		}
	}
	if ended != 1 {
		t.Errorf("%d sessions made room, want 1", ended)
	}
}
