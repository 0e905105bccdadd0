package console

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
)

// command matches a command for people that calls the service.
var command = regexp.MustCompile(`rewardwatch (?:explain|(?:incident|retrain) [a-z]+)\b(?: [0-9A-Za-z_-]*[0-9][0-9A-Za-z_-]*)?`)

// plainAddress matches addresses that need no quoting in a shell.
var plainAddress = regexp.MustCompile(`^https?://[0-9A-Za-z.:/_~\[\]-]+$`)

// commands adds the address of the service to the commands in a text. Otherwise, they would call another service, or
// none.
func (c *Console) commands(r *http.Request, text string) string {
	at := c.address(r)
	if at == "http://"+names.LocalAddress || !plainAddress.MatchString(at) {
		return text
	}
	if strings.Contains(at, "[") {
		at = "'" + at + "'"
	}
	return command.ReplaceAllStringFunc(text, func(of string) string { return of + " --server " + at })
}

// address returns the address at which the browser reaches the service.
func (c *Console) address(r *http.Request) string {
	if c.access.ExternalURL != "" {
		return strings.TrimRight(c.access.ExternalURL, "/")
	}
	scheme := "http"
	if c.access.Encrypted(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}
