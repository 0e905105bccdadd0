package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// sessionCookie is the name of the cookie that holds a login.
const sessionCookie = "rewardwatch_session"

// sessionLength is how long a login lasts before the token is needed again.
const sessionLength = 12 * time.Hour

// newSession returns proof, valid until a time, that its owner has shown the token: that time, a dot and the
// HMAC-SHA256. The service does not store it, so a session outlives a restart and is valid for every instance with
// the same token. Only a change of the token ends it early.
func newSession(token string, until time.Time) string {
	end := strconv.FormatInt(until.Unix(), 36)
	key := sha256.Sum256([]byte(token))
	mac := hmac.New(sha256.New, key[:])
	_, _ = mac.Write([]byte("console session\x00" + end)) // a hash never fails
	return end + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// holds reports whether a session was made with this token and is still valid. It compares in constant time.
func holds(session, token string, now time.Time) bool {
	end, _, _ := strings.Cut(session, ".")
	seconds, err := strconv.ParseInt(end, 36, 64)
	if err != nil {
		return false
	}
	until := time.Unix(seconds, 0)
	return hmac.Equal([]byte(session), []byte(newSession(token, until))) && now.Before(until)
}
