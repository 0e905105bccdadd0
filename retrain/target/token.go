package target

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// readToken reads a token or a password. Its errors never contain the content of the file.
func readToken(file string) (string, error) {
	text, err := ingest.ReadSecretFile(file)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	token := strings.TrimSpace(text)
	switch {
	case token == "":
		err = errors.New("it is empty")
	case strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r == 0x7f }):
		err = errors.New("it has more than one line, or control characters")
	}
	if err != nil {
		return "", fmt.Errorf("read token %s: %w", file, err)
	}
	return token, nil
}

// bearer returns the value of an Authorization header.
func bearer(token string) string { return "Bearer " + token }
