package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// sessionCookie is what a browser keeps of a login.
const sessionCookie = "rewardwatch_session"

// sessionLength is for how long a login lasts; then the token is asked for again.
const sessionLength = 12 * time.Hour

// newSession proves until a time that its owner has shown the token: it is that time, a dot and the HMAC-SHA256. The service keeps nothing
// of it, so that a session outlives a restart and holds for every instance with the same token; what ends it early is a change of the token.
func newSession(token string, until time.Time) string {
	end := strconv.FormatInt(until.Unix(), 36)
	key := sha256.Sum256([]byte(token))
	mac := hmac.New(sha256.New, key[:])
	_, _ = mac.Write([]byte("console session\x00" + end)) // a hash takes everything
	return end + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// holds reports whether a session was made of this token and lasts. It takes the same time wherever sessions differ.
func holds(session, token string, now time.Time) bool {
	end, _, _ := strings.Cut(session, ".")
	seconds, err := strconv.ParseInt(end, 36, 64)
	if err != nil {
		return false
	}
	until := time.Unix(seconds, 0)
	return hmac.Equal([]byte(session), []byte(newSession(token, until))) && now.Before(until)
}
