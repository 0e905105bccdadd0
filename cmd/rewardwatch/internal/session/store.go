package session

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Ways to log in.
const (
	ByToken    = "token"
	ByProvider = "oidc"
)

// bounds are the maximum numbers of sessions in a store. If a person has more, the oldest of them ends. A full store
// admits no further token sessions. With too many sessions of a token, it admits no more of that token, because it
// could no longer remember that one of them was ended.
type bounds struct {
	all     int
	ofOne   int
	ofToken int // so that the holder of one token does not lock out others
}

var usualBounds = bounds{all: 20_000, ofOne: 20, ofToken: 2_000}

const sinceLastUsed = time.Minute // precision of the last use

// Session is a login of one person in one browser.
type Session struct {
	ID     string    `json:"id"` // public: it is not what the cookie contains
	Name   string    `json:"name"`
	Role   string    `json:"role"`
	By     string    `json:"by"`   // "token" or "oidc"
	From   string    `json:"from"` // address of the browser, or of the proxy in front of it
	Opened time.Time `json:"opened"`
	Used   time.Time `json:"used"`
	Until  time.Time `json:"until"`
	Own    bool      `json:"own"` // whether it is the session of the request that lists it

	who   Person
	key   [sha256.Size]byte // hash of its cookie
	token string            // file of its token, "" for a session of a provider
	ended bool              // the token session was ended, although its cookie is proof by itself
}

// Store contains the sessions of one instance: those that a provider has opened, and the token sessions that were used
// since the start. Its methods are safe for concurrent use.
type Store struct {
	now  func() time.Time
	most bounds

	saving sync.Mutex // locked before mu, so that identifying a session never waits for the disk
	file   *file      // nil before Keep

	mu       sync.Mutex
	sessions map[[sha256.Size]byte]*Session // by the hash of their cookies
}

// NewStore returns a store without sessions.
func NewStore(now func() time.Time) *Store {
	return &Store{now: now, most: usualBounds, sessions: map[[sha256.Size]byte]*Session{}}
}

// Errors of End, for errors.Is. People see their texts.
var (
	// ErrUnknown means that the session does not exist, or that the person may not see it.
	ErrUnknown = errors.New("unknown session")
	// ErrNotSaved means that the session has ended, but only for this process.
	ErrNotSaved = errors.New("the session has ended, but this could not be saved: it may be valid again after the service restarts")
)

// Open opens a session for a person whom a provider has identified, and returns the value of its cookie, which is
// random.
func (s *Store) Open(r *http.Request, who Person, length time.Duration) string {
	defer func() { _ = s.save() }() // which reports its error
	s.mu.Lock()
	defer s.mu.Unlock()
	cookie, now := rand.Text()+rand.Text(), s.now()
	who.By = ByProvider
	s.makeRoom(now, who)
	s.add(r, cookie, "", who, now, now.Add(length))
	return cookie
}

func (s *Store) add(r *http.Request, cookie, token string, who Person, now, until time.Time) {
	key := sha256.Sum256([]byte(cookie))
	s.sessions[key] = &Session{
		ID: rand.Text()[:16], Name: who.Name, Role: string(who.Role), By: cmp.Or(who.By, ByToken), From: r.RemoteAddr, Opened: now, Used: now, Until: until,
		who: who, key: key, token: token,
	}
}

// makeRoom removes expired sessions, and ends the oldest sessions of a person who has too many. It reports whether it
// had to end a session of a provider, which is still in the file.
func (s *Store) makeRoom(now time.Time, who Person) (ended bool) {
	var own []*Session
	for key, open := range s.sessions {
		if !now.Before(open.Until) {
			delete(s.sessions, key)
		} else if open.By == ByProvider && open.who.Name == who.Name {
			own = append(own, open)
		}
	}
	slices.SortFunc(own, func(a, b *Session) int { return cmp.Or(a.Used.Compare(b.Used), cmp.Compare(a.ID, b.ID)) })
	for len(own) >= s.most.ofOne {
		delete(s.sessions, own[0].key)
		own, ended = own[1:], true
	}
	for len(s.sessions) >= s.most.all && s.dropOldest() {
		ended = true
	}
	return ended
}

// dropOldest ends the provider session that has not been used for the longest time, and reports whether there was one.
func (s *Store) dropOldest() bool {
	var oldest *Session
	for _, open := range s.sessions {
		if open.By == ByProvider && (oldest == nil || open.Used.Before(oldest.Used)) {
			oldest = open
		}
	}
	if oldest != nil {
		delete(s.sessions, oldest.key)
	}
	return oldest != nil
}

// of returns the person of the provider session with a cookie.
func (s *Store) of(cookie string) (Person, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open, now := s.sessions[sha256.Sum256([]byte(cookie))], s.now()
	if open == nil || open.By != ByProvider || !now.Before(open.Until) {
		return Person{}, false
	}
	open.use(now)
	return open.who, true
}

// admits reports whether a session with the token in a file has not been ended. It remembers the session, so that it
// can be ended.
func (s *Store) admits(r *http.Request, cookie, token string, who Person, until time.Time) bool {
	known, ended := s.remember(r, cookie, token, who, until)
	if ended {
		_ = s.save() // which reports its error
	}
	return known
}

// remember adds a token session unless it is known. It reports whether the session is open, and whether a provider
// session had to end to make room.
func (s *Store) remember(r *http.Request, cookie, token string, who Person, until time.Time) (open, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if open := s.sessions[sha256.Sum256([]byte(cookie))]; open != nil {
		open.use(now)
		return !open.ended, false
	}
	if s.ofToken(token, now) >= s.most.ofToken {
		return false, false
	}
	if len(s.sessions) >= s.most.all {
		ended = s.makeRoom(now, Person{})
	}
	if len(s.sessions) >= s.most.all {
		return false, ended
	}
	s.add(r, cookie, token, who, now, until)
	return true, ended
}

// ofToken returns the number of sessions of a token that have not expired, including those that were ended.
func (s *Store) ofToken(token string, now time.Time) int {
	n := 0
	for _, open := range s.sessions {
		if open.By == ByToken && open.token == token && now.Before(open.Until) {
			n++
		}
	}
	return n
}

func (s *Session) use(now time.Time) {
	if now.Sub(s.Used) >= sinceLastUsed {
		s.Used = now
	}
}

// end ends the session with a cookie.
func (s *Store) end(cookie string) {
	s.mu.Lock()
	open := s.sessions[sha256.Sum256([]byte(cookie))]
	ends := open != nil && !open.ended
	if ends {
		s.endIt(open)
	}
	s.mu.Unlock()
	if ends { // anyone can send a cookie without a session
		_ = s.save() // which reports its error
	}
}

func (s *Store) endIt(open *Session) {
	if open.By == ByProvider {
		delete(s.sessions, open.key)
		return
	}
	open.ended = true
}

// End ends a session if it is open and may reports that the caller may end it. It returns the session, with ErrNotSaved
// if a restart may open it again, or ErrUnknown.
func (s *Store) End(id string, may func(Session) bool) (Session, error) {
	ended, err := s.endOne(id, may)
	if err == nil && s.save() != nil {
		err = ErrNotSaved
	}
	return ended, err
}

func (s *Store) endOne(id string, may func(Session) bool) (Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, open := range s.sessions {
		if open.ID == id && !open.ended && now.Before(open.Until) && may(*open) {
			s.endIt(open)
			return *open, nil
		}
	}
	return Session{}, ErrUnknown
}

// List returns the open sessions that a caller may see, the most recently used first. Sessions with one of the cookies
// are the caller's own.
func (s *Store) List(may func(Session) bool, cookies ...string) []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := map[*Session]bool{}
	for _, cookie := range cookies {
		own[s.sessions[sha256.Sum256([]byte(cookie))]] = true
	}
	now, out := s.now(), []Session{}
	for _, open := range s.sessions {
		shown := *open
		shown.Own = own[open]
		if !open.ended && now.Before(open.Until) && may(shown) {
			out = append(out, shown)
		}
	}
	slices.SortFunc(out, func(a, b Session) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.ID, b.ID)) })
	return out
}
