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

// file is where a store keeps what a restart must not forget.
type file struct {
	path  string
	terms string
	tell  func(error)
}

// keptVersion is that of the format. A file of another version is not read: people log in again.
const keptVersion = 1

// maxKept bounds what is read of a file, in bytes. A full store with the longest names needs half of it.
const maxKept = 64 << 20

// kept is the content of the file.
type kept struct {
	Version  int           `json:"version"`
	Terms    string        `json:"terms"`
	Sessions []keptSession `json:"sessions"`
}

// keptSession is a session without its cookie. One of a token is only kept once it was ended: until then, its cookie is
// proof by itself.
type keptSession struct {
	Session
	Cookie string `json:"cookie_sha256"`
	Token  string `json:"token_file,omitempty"`
	Tenant string `json:"tenant,omitempty"`
}

// Keep has the store continue with the sessions in a file, and keep there from now on which sessions a provider has
// opened, and which ones of tokens were ended. The file has hashes of their cookies, which let no one in. Sessions of a
// provider that began under other terms are over, also for later starts: terms names what decides who may log in with
// which role. tell receives why the file could not be read or written; without it, sessions end with the process.
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
	_ = s.save() // which tells: sessions that are not continued must not return with the next start
}

// restore adds the sessions of a file that are not over.
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

// readKept returns the content of a file, nil if there is none.
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

// live returns the session as the store has it, or nil if it is none.
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

// save writes the file, if the store has one, and returns once it is on the disk. The file's tell has received its error.
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
