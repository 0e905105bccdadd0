// Package redact removes credentials from the answers to HTTP requests before they are logged.
package redact

import (
	"net/http"
	"strings"
)

// leastSecret is the length of the shortest secret, or beginning of one, that is removed. Shorter ones occur in other words.
const leastSecret = 4

// Credentials removes the token and the password of a request from its answer, because error pages of proxies repeat
// request headers. If the answer was cut off within a secret, it also removes the beginning of that secret.
func Credentials(answer string, request *http.Request) string {
	_, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	_, password, _ := request.BasicAuth()
	for _, secret := range []string{token, password} {
		if len(secret) < leastSecret {
			continue
		}
		answer = strings.ReplaceAll(answer, secret, "[secret]")
		for n := len(secret) - 1; n >= leastSecret; n-- {
			if rest, cut := strings.CutSuffix(answer, secret[:n]); cut {
				answer = rest + "[secret]"
				break
			}
		}
	}
	return answer
}
