// Package session identifies who uses the console: someone with a token, someone logged in through a provider, or a
// program on this machine.
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

// Names of the cookie that holds a login. Browsers take a cookie with the prefix only over https and for the whole of
// exactly this host, so that neither clear text nor a page of a sibling host can replace it.
const (
	CookieName   = "rewardwatch_session"
	cookieOfHost = "__Host-" + CookieName
)

// Length is how long a login lasts before the token is needed again.
const Length = 12 * time.Hour

// Person is who uses the console.
type Person struct {
	Name  string // that of the token, or as the person has entered it; "" if it is unknown
	Known bool   // whether the name is that of the token, or from the provider
	By    string // ByProvider if the provider says who it is
	Role  access.Role

	Tenant string // that the person is confined to, "" for none
}

// with adds what is known of the holder of a token.
func (p Person) with(h access.Holder) Person {
	if h.Name != "" {
		p.Name, p.Known = h.Name, true
	}
	p.Role, p.Tenant = h.Role, h.Tenant
	return p
}

// New returns proof, valid until a time, that its owner has shown the token: that time, the name that the owner has entered,
// random characters that tell it from others, and the HMAC-SHA256, with dots between. The service does not need to store it, so
// a session outlives a restart and is valid for every instance with the same token. A change of the token ends it early, and a
// Store may.
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

// maxAhead is how far ahead a session may end: its owner can make one, and the clocks of instances differ.
const maxAhead = Length + time.Hour

// holder returns whose session it is, until when, and whether it was made with this token and is still valid. It compares in
// constant time.
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
