// Package redact keeps credentials out of what is logged of answers.
package redact

import (
	"net/http"
	"strings"
)

// leastSecret is the length of the shortest secret, or beginning of one, that is removed. Shorter ones occur in other words.
const leastSecret = 4

// Credentials removes from an answer what its request authenticates with: error pages of proxies show headers, and the
// answer is logged. An answer that is cut off may end with the beginning of a secret.
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
