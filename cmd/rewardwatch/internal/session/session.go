// Package session identifies the users of the console: people with a token, people logged in through a provider, and
// programs on this machine.
package session

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
)

// Names of the cookie of a login. Browsers accept a cookie with the prefix only over https, and only for exactly this
// host and all of its paths, so that neither clear text nor a page of a sibling host can replace it.
const (
	CookieName   = "rewardwatch_session"
	cookieOfHost = "__Host-" + CookieName
)

// Length is the duration of a login, after which the token is needed again.
const Length = 12 * time.Hour

// Person is a user of the console.
type Person struct {
	Name  string // name of the token, or as entered by the person; "" if unknown
	Known bool   // whether the name comes from the token or the provider
	By    string // ByProvider if the provider has identified the person
	Role  access.Role

	Tenant string // tenant to which the person is confined, "" for none
}

// with adds the properties of the holder of a token.
func (p Person) with(h access.Holder) Person {
	if h.Name != "" {
		p.Name, p.Known = h.Name, true
	}
	p.Role, p.Tenant = h.Role, h.Tenant
	return p
}

// New returns proof, valid until a given time, that its owner has shown the token. It consists of that time, the name
// that the owner has entered, random characters that make it unique, and the HMAC-SHA256, separated by dots. The
// service does not need to store it, so a session survives a restart and is valid for every instance with the same
// token. A change of the token ends it early, and a Store can end it.
func New(token string, who Person, until time.Time) string {
	return signed(token, who, until, rand.Text()[:10])
}

func signed(token string, who Person, until time.Time, salt string) string {
	signed := strconv.FormatInt(until.Unix(), 36) + "." + base64.RawURLEncoding.EncodeToString([]byte(who.Name)) + "." + salt
	key := sha256.Sum256([]byte(token))
	mac := hmac.New(sha256.New, key[:])
	_, _ = mac.Write([]byte("console session\x00" + signed)) // a hash never fails
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// maxAhead is the maximum time until a session ends: its owner could make one that never does. The clocks of instances
// differ.
const maxAhead = Length + time.Hour

// holder returns the person of a session, when it ends, and whether it was made with this token and is still valid. It
// compares in constant time.
func holder(session, token string, now time.Time) (who Person, until time.Time, valid bool) {
	end, rest, _ := strings.Cut(session, ".")
	encoded, rest, _ := strings.Cut(rest, ".")
	salt, _, _ := strings.Cut(rest, ".")
	seconds, err := strconv.ParseInt(end, 36, 64)
	name, nameErr := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || nameErr != nil {
		return Person{}, until, false
	}
	who, until = Person{Name: string(name)}, time.Unix(seconds, 0)
	if !hmac.Equal([]byte(session), []byte(signed(token, who, until, salt))) || !now.Before(until) || until.After(now.Add(maxAhead)) {
		return Person{}, until, false
	}
	return who, until, true
}
