// Package access defines who holds which token, and what the holder can do. The API and the console ask it.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Right is something that a request may need. Rights can be combined: any of them is then enough.
type Right uint8

// The rights.
const (
	Read       Right = 1 << iota // see everything that is watched
	Act                          // comment, mute, ask for a retraining: what can be undone
	Decide                       // accept a drift, change a baseline, release a guard, approve or reject a retraining
	Administer                   // reload, forget policies, profile
	Send                         // send telemetry
	Obey                         // read the guards of a policy
	Report                       // report the status of a job
	Follow                       // read a gate or a request
)

// Role is a set of rights with a name.
type Role string

// The roles. Each of Viewer to Admin has the rights of those before it.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Approver Role = "approver"
	Admin    Role = "admin"
	Agents   Role = "agents" // programs that send telemetry
	Jobs     Role = "jobs"   // programs that train
)

// Roles returns all roles.
func Roles() []Role { return []Role{Viewer, Operator, Approver, Admin, Agents, Jobs} }

// Permits reports whether a role has one of the rights.
func (r Role) Permits(any Right) bool {
	return map[Role]Right{
		Viewer:   Read | Obey | Follow,
		Operator: Read | Obey | Follow | Act,
		Approver: Read | Obey | Follow | Act | Decide,
		Admin:    Read | Obey | Follow | Act | Decide | Administer | Send | Report,
		Agents:   Send | Obey,
		Jobs:     Report | Follow,
	}[r]&any != 0
}

// Holder is who has a token.
type Holder struct {
	Name   string // "" if several people or programs share the token
	Role   Role
	Tenant string // that the holder is confined to, "" for none
	File   string // with the token
}

// Token is a token that has been read.
type Token struct {
	Holder
	Text string
}

// Errors of tokens, for errors.Is.
var (
	ErrFile    = errors.New("read a token file")
	ErrUnknown = errors.New("a valid bearer token is required")
)

// Holders are all who have a token.
type Holders []Holder

// Anyone reports whether one of them has one of the rights.
func (hs Holders) Anyone(any Right) bool {
	return slices.ContainsFunc(hs, func(h Holder) bool { return h.Role.Permits(any) })
}

// Tokens reads all token files, so that a token can be replaced without a restart. It returns those that can be read, and
// an ErrFile for the others.
func (hs Holders) Tokens() ([]Token, error) {
	var out []Token
	var failed error
	for _, h := range hs {
		text, err := readToken(h.File)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		out = append(out, Token{h, text})
	}
	return out, failed
}

// Of returns whose token it is. It fails with ErrUnknown, or with an ErrFile if it may be one that cannot be read. For says
// when the files are read.
func (hs Holders) Of(ctx context.Context, text string) (Holder, error) {
	tokens, err := hs.For(ctx)
	for _, t := range tokens {
		if same(text, t.Text) {
			return t.Holder, nil
		}
	}
	if err != nil {
		return Holder{}, err
	}
	return Holder{}, ErrUnknown
}

type ofRequestKey struct{}

// Within answers requests in whose contexts the files are read once, for all calls of For: their number does not grow with
// the places that ask, and all of them see the same tokens.
func (hs Holders) Within(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read := sync.OnceValues(hs.Tokens)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ofRequestKey{}, read)))
	})
}

// For returns what Tokens returns, at the first time in the context of a request. Outside of Within, it reads the files.
func (hs Holders) For(ctx context.Context) ([]Token, error) {
	if read, within := ctx.Value(ofRequestKey{}).(func() ([]Token, error)); within {
		return read()
	}
	return hs.Tokens()
}

// Check reads all files. Beside an ErrFile it fails if two holders have the same token: it would be unknown whose it is.
func (hs Holders) Check() error {
	tokens, err := hs.Tokens()
	for i, t := range tokens {
		for _, other := range tokens[:i] {
			if t.Text == other.Text {
				err = errors.Join(err, fmt.Errorf("%w: %s and %s have the same token", ErrFile, other.File, t.File))
			}
		}
	}
	return err
}

// MinToken is the minimum number of characters of a token.
const MinToken = 32

func readToken(file string) (string, error) {
	text, err := ingest.ReadSecretFile(file)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrFile, err)
	}
	token := strings.TrimSpace(text)
	if len(token) < MinToken {
		return "", fmt.Errorf("%w: the token in %s has %d characters and must have at least %d: create one with \"rewardwatch secret FILE\"",
			ErrFile, file, len(token), MinToken)
	}
	return token, nil
}

// same compares tokens in constant time, whatever their lengths.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
