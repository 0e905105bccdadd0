package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/ingest/datadir"
)

// file is the file in which a store keeps everything that must survive a restart.
type file struct {
	path  string
	terms string
	tell  func(error)
}

// keptVersion is the version of the format. A file with another version is not read, and people must log in again.
const keptVersion = 1

// maxKept limits the size of a file that is read, in bytes. A full store with the longest names needs half of it.
const maxKept = 64 << 20

// kept is the content of the file.
type kept struct {
	Version  int           `json:"version"`
	Terms    string        `json:"terms"`
	Sessions []keptSession `json:"sessions"`
}

// keptSession is a session without its cookie. A session of a token is kept only after it was ended: until then, its
// cookie is sufficient proof.
type keptSession struct {
	Session
	Cookie string `json:"cookie_sha256"`
	Token  string `json:"token_file,omitempty"`
	Tenant string `json:"tenant,omitempty"`
}

// Keep makes the store continue with the sessions in a file. From now on, it keeps there the sessions that a provider
// has opened, and the token sessions that were ended. The file contains hashes of the cookies, which do not let anyone
// in. Sessions of a provider that began under other terms end, also for later starts: terms identifies the settings
// that decide who may log in with which role. tell is called if the file cannot be read or written; in that case,
// sessions end with the process.
func (s *Store) Keep(path, terms string, tell func(error)) {
	s.saving.Lock()
	s.file = &file{path, terms, tell}
	s.saving.Unlock()
	text, err := readKept(path)
	if text == nil && err == nil {
		return
	}
	var found kept
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		tell(fmt.Errorf("read the sessions in %s (everyone must log in again): %w", path, err))
	} else if found.Version == keptVersion {
		s.restore(found, terms)
	}
	_ = s.save() // which reports its error; sessions that were not restored must not return at the next start
}

// restore adds the sessions of a file that have not expired.
func (s *Store) restore(found kept, terms string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, k := range found.Sessions {
		if open := k.live(); open != nil && now.Before(open.Until) && (open.ended || found.Terms == terms) && len(s.sessions) < s.most.all {
			s.sessions[open.key] = open
		}
	}
}

// readKept returns the content of a file, or nil if there is none.
func readKept(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKept+1))
	if err == nil && len(text) > maxKept {
		err = fmt.Errorf("it is longer than %d bytes", maxKept)
	}
	return text, errors.Join(err, f.Close())
}

// live returns the session in the form of the store, or nil if it is invalid.
func (k *keptSession) live() *Session {
	open := k.Session
	key, err := hex.DecodeString(k.Cookie)
	if err != nil || len(key) != sha256.Size || open.By != ByProvider && open.By != ByToken || !access.Role(open.Role).Permits(access.Read) {
		return nil
	}
	open.key, open.token, open.ended = [sha256.Size]byte(key), k.Token, open.By == ByToken
	open.who = Person{Name: open.Name, Known: open.By == ByProvider, Role: access.Role(open.Role), Tenant: k.Tenant}
	if open.By == ByProvider {
		open.who.By = ByProvider
	}
	return &open
}

// save writes the file, if the store has one, and returns once it is on disk. It also reports its error to the file's
// tell.
func (s *Store) save() error {
	s.saving.Lock()
	defer s.saving.Unlock()
	if s.file == nil {
		return nil
	}
	text, err := json.Marshal(s.kept(s.file.terms))
	if err == nil {
		err = datadir.Replace(s.file.path, text, 0o600)
	}
	if err != nil {
		s.file.tell(fmt.Errorf("save the sessions (a restart may end new sessions and reopen ended ones): %w", err))
	}
	return err
}

func (s *Store) kept(terms string) kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, now := kept{Version: keptVersion, Terms: terms, Sessions: []keptSession{}}, s.now()
	for _, open := range s.sessions {
		if now.Before(open.Until) && (open.By == ByProvider || open.ended) {
			out.Sessions = append(out.Sessions, keptSession{*open, hex.EncodeToString(open.key[:]), open.token, open.who.Tenant})
		}
	}
	return out
}
