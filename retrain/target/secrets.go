package target

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Targets receive secrets, and some repeat in an error what they received. All users of the API can read what is kept
// of their answers, so every secret is removed first.

const (
	hidden      = "[secret]"
	leastSecret = 4  // bytes; anything shorter occurs in any text
	longSegment = 20 // minimum bytes for a part of a URL's path to count as a secret, as in the webhooks of chat services
)

// Secrets are texts that must not be stored, the longest first, so that none is found within another.
type Secrets []string

// with returns the secrets and more of them, each also as encoded in JSON, HTML, URLs, base64 and hex.
func (s Secrets) with(values ...string) Secrets {
	out := slices.Clone(s)
	for _, v := range values {
		asJSON, _ := json.Marshal(v) // a string has no error
		slashed := strings.ReplaceAll(v, "/", `\/`)
		for _, form := range []string{
			v, strings.Trim(string(asJSON), `"`), slashed, html.EscapeString(v), url.QueryEscape(v), url.PathEscape(v), hex.EncodeToString([]byte(v)),
			base64.RawStdEncoding.EncodeToString([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v)), // also before padding
		} {
			if len(v) >= leastSecret && !slices.Contains(out, form) {
				out = append(out, form)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return out
}

// Clean returns at most the first most bytes of a text, without the secrets. It removes secrets that begin within those
// bytes completely, and the beginning of a secret at the end of the text, as when an answer broke off.
func (s Secrets) Clean(text string, most int) string {
	return s.cleanPart(text, 0, min(len(text), most))
}

// CleanEnd returns at most the last most bytes of a text, without the secrets. It completely removes secrets that begin
// before those bytes, if they begin within the text.
func (s Secrets) CleanEnd(text string, most int) string {
	return s.cleanPart(text, max(0, len(text)-most), len(text))
}

func (s Secrets) cleanPart(text string, from, to int) string {
	var b strings.Builder
	for i := 0; i < to; {
		n := s.at(text[i:])
		switch {
		case n > 0 && i+n > from:
			b.WriteString(hidden)
		case n == 0 && i >= from:
			b.WriteByte(text[i])
		}
		i += max(n, 1)
	}
	return strings.ToValidUTF8(b.String(), "�")
}

// at returns the length of the secret, complete or cut off by the end, with which a text begins, or 0.
func (s Secrets) at(text string) int {
	for _, secret := range s {
		if strings.HasPrefix(text, secret) {
			return len(secret)
		}
	}
	if len(text) >= leastSecret && slices.ContainsFunc(s, func(secret string) bool { return strings.HasPrefix(secret, text) }) {
		return len(text)
	}
	return 0
}

// harmless are the request headers whose values are not secret.
var harmless = []string{"Content-Type", "Accept", "Webhook-Id", "Webhook-Timestamp", "X-Github-Api-Version"}

// sentTo returns the secrets of a URL and of the headers, which are alternating names and values.
func sentTo(to string, headers []string) []string {
	out := inURL(to)
	for i := 0; i+1 < len(headers); i += 2 {
		if slices.Contains(harmless, http.CanonicalHeaderKey(headers[i])) {
			continue
		}
		out = append(out, headers[i+1])
		for word := range strings.FieldsSeq(headers[i+1]) { // Bearer and the token, or several signatures
			if !strings.EqualFold(word, "Bearer") && !strings.EqualFold(word, "Basic") {
				_, signature, _ := strings.Cut(word, ",")
				out = append(out, word, signature)
			}
		}
	}
	return out
}

// inURL returns the user and password of a URL, the values of its query, and the parts of its path that are too long to
// be names.
func inURL(to string) []string {
	u, err := url.Parse(to)
	if err != nil {
		return []string{to}
	}
	var out []string
	if password, is := u.User.Password(); is {
		out = append(out, password)
	}
	for _, values := range u.Query() {
		out = append(out, values...)
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if len(part) >= longSegment {
			out = append(out, part)
		}
	}
	return out
}

// WithoutSecrets returns a text without the secrets among the values.
func WithoutSecrets(text string, values ...string) string {
	return Secrets{}.with(values...).Clean(text, len(text))
}
