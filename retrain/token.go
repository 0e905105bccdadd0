package retrain

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// readToken reads a token or a password. No error of it repeats what the file holds.
func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	switch {
	case token == "":
		err = errors.New("it is empty")
	case strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r == 0x7f }):
		err = errors.New("it holds more than one line, or control characters")
	}
	if err != nil {
		return "", fmt.Errorf("read token %s: %w", file, err)
	}
	return token, nil
}

// bearer gives the value of an Authorization header.
func bearer(token string) string { return "Bearer " + token }
