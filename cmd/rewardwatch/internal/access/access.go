// Package access defines the holder of each token and the rights of the holder, for the API and the console.
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

// Right is a right that a request may require. If rights are combined, any one of them is enough.
type Right uint8

// The rights.
const (
	Read       Right = 1 << iota // see everything that is watched
	Act                          // comment, mute, ask for a retraining: everything that can be undone
	Decide                       // accept a drift, change a baseline, release a guard, approve or reject a retraining
	Administer                   // reload, forget policies, profile
	Send                         // send telemetry
	Obey                         // read the guards of a policy
	Report                       // report the status of a job
	Follow                       // read a gate or a request
)

// Role is a set of rights with a name.
type Role string

// The roles. From Viewer to Admin, each role includes the rights of the one before it.
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

// Permits reports whether a role has at least one of the rights.
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

// Holder is the person or program to which a token belongs.
type Holder struct {
	Name   string // "" if several people or programs share the token
	Role   Role
	Tenant string // tenant to which the holder is confined, "" for none
	File   string // file that contains the token
}

// Token is a token with its holder.
type Token struct {
	Holder
	Text string
}

// Errors of tokens, for errors.Is.
var (
	ErrFile    = errors.New("read a token file")
	ErrUnknown = errors.New("a valid bearer token is required")
)

// Holders are all holders of tokens.
type Holders []Holder

// Anyone reports whether at least one holder has at least one of the rights.
func (hs Holders) Anyone(any Right) bool {
	return slices.ContainsFunc(hs, func(h Holder) bool { return h.Role.Permits(any) })
}

// Tokens reads all token files, so that a token can be replaced without a restart. It returns the tokens that it could
// read, and an ErrFile for the others.
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

// Of returns the holder of a token. It fails with ErrUnknown, or with an ErrFile if the token may be one that could not
// be read. The files are read as described for For.
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

// Within reads the files once per request, for all calls of For with the request's context. The number of reads then
// does not depend on the number of callers, and all callers see the same tokens.
func (hs Holders) Within(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read := sync.OnceValues(hs.Tokens)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ofRequestKey{}, read)))
	})
}

// For returns the result of Tokens, from its first call in the context of a request. Outside of Within, it reads the
// files.
func (hs Holders) For(ctx context.Context) ([]Token, error) {
	if read, within := ctx.Value(ofRequestKey{}).(func() ([]Token, error)); within {
		return read()
	}
	return hs.Tokens()
}

// Check reads all files. It fails with an ErrFile, or if two holders have the same token, whose owner would be
// ambiguous.
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

// same compares tokens in constant time, even if their lengths differ.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
