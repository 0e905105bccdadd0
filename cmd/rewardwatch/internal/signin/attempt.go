package signin

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// Bounds for sign-ins in progress.
const (
	attemptLength = 10 * time.Minute
	maxUsed       = 100_000
)

// attempt is a sign-in in progress. Only the browser keeps it, encrypted, so that attempts by others cannot displace
// it.
type attempt struct {
	State, Nonce, Verifier string
	Page                   string // page to return to
	Until                  int64  // Unix time
}

func newAttempt(page string, now time.Time) attempt {
	return attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Page: page, Until: now.Add(attemptLength).Unix()}
}

// matches reports whether an answer belongs to this sign-in.
func (a attempt) matches(state string) bool { return a.State != "" && same(a.State, state) }

// same compares texts in constant time, even if their lengths differ.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// sealer encrypts sign-ins with a key that only this process has.
type sealer struct {
	aead cipher.AEAD

	mu   *sync.Mutex
	used map[string]int64 // states of finished sign-ins, with the times at which they expire
}

func newSealer() sealer {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has the right length
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return sealer{aead: aead, mu: &sync.Mutex{}, used: map[string]int64{}}
}

func (s sealer) seal(a attempt) string {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // it consists of strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, nil))
}

// open returns the attempt that was sealed, or ErrStale.
func (s sealer) open(kept string, now time.Time) (attempt, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(kept)
	if err != nil {
		return attempt{}, ErrStale
	}
	text, err := s.aead.Open(nil, nil, sealed, nil)
	var a attempt
	if err != nil || json.Unmarshal(text, &a) != nil || now.Unix() >= a.Until {
		return attempt{}, ErrStale
	}
	return a, nil
}

// use reports whether a sign-in has not been finished before. If too many have been, it forgets some; the provider
// itself accepts no code twice.
func (s sealer) use(a attempt, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, used := s.used[a.State]; used {
		return false
	}
	if len(s.used) >= maxUsed {
		for state, until := range s.used {
			if now.Unix() >= until || len(s.used) >= maxUsed {
				delete(s.used, state)
			}
		}
	}
	s.used[a.State] = a.Until
	return true
}
