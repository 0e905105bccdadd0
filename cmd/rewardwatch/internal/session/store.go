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

// bounds are the most sessions of a store. Beyond that of a person, their oldest session ends. A full store admits no
// further token sessions, and one with too many of a token none of that token, as one that had ended could be among them.
type bounds struct {
	all     int
	ofOne   int
	ofToken int // so that who has one token does not keep out the others
}

var usualBounds = bounds{all: 20_000, ofOne: 20, ofToken: 2_000}

const sinceLastUsed = time.Minute // how exact the last use is

// Session is a login of one person in one browser.
type Session struct {
	ID     string    `json:"id"` // public: it is not what the cookie contains
	Name   string    `json:"name"`
	Role   string    `json:"role"`
	By     string    `json:"by"`   // "token" or "oidc"
	From   string    `json:"from"` // the address of the browser, or of the proxy before it
	Opened time.Time `json:"opened"`
	Used   time.Time `json:"used"`
	Until  time.Time `json:"until"`
	Own    bool      `json:"own"` // of the request that lists it

	who   Person
	key   [sha256.Size]byte // the hash of its cookie
	token string            // the file of its token, "" for one of a provider
	ended bool              // a token session, whose cookie is proof by itself
}

// Store has the sessions of one instance: those that a provider has opened, and those of tokens that were used since the
// start. Its methods are safe for concurrent use.
type Store struct {
	now  func() time.Time
	most bounds

	saving sync.Mutex // locked before mu, so that nothing waits for the disk to know whose session it is
	file   *file      // nil before Keep

	mu       sync.Mutex
	sessions map[[sha256.Size]byte]*Session // by the hash of their cookie
}

// NewStore returns a store without sessions.
func NewStore(now func() time.Time) *Store {
	return &Store{now: now, most: usualBounds, sessions: map[[sha256.Size]byte]*Session{}}
}

// Errors of End, for errors.Is. People see their texts.
var (
	// ErrUnknown means that there is no such session, or not for this person.
	ErrUnknown = errors.New("unknown session")
	// ErrNotSaved means that the session is over, but only for this process.
	ErrNotSaved = errors.New("the session has ended, but this could not be saved: it may be valid again after the service restarts")
)

// Open opens the session of a person whom a provider knows, and returns the value of its cookie, which is random.
func (s *Store) Open(r *http.Request, who Person, length time.Duration) string {
	defer func() { _ = s.save() }() // which tells
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

// makeRoom forgets what is over, and ends the oldest sessions of a person who has too many. It reports whether it had to
// end one of a provider, which the file still has.
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

// dropOldest ends the session of a provider that was not used for longest, and reports whether there was one.
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

// of returns whose session of a provider a cookie is.
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

// admits reports whether a session of the token in a file has not been ended. It remembers the session, so that it can be.
func (s *Store) admits(r *http.Request, cookie, token string, who Person, until time.Time) bool {
	known, ended := s.remember(r, cookie, token, who, until)
	if ended {
		_ = s.save() // which tells
	}
	return known
}

// remember adds a session of a token unless it is known. It reports whether the session is open, and whether one of a
// provider had to end for it.
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

// ofToken returns how many sessions of a token are not over, with those that were ended.
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

// end ends the session of a cookie.
func (s *Store) end(cookie string) {
	s.mu.Lock()
	open := s.sessions[sha256.Sum256([]byte(cookie))]
	ends := open != nil && !open.ended
	if ends {
		s.endIt(open)
	}
	s.mu.Unlock()
	if ends { // anyone can send a cookie that is none
		_ = s.save() // which tells
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

// List returns the open sessions that a caller may see, the one used last first. Those of cookies are its own.
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
