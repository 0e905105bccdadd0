package ingest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// maxSecretFile is the maximum size in bytes of a file with a secret.
const maxSecretFile = 64 << 10

// ReadSecretFile returns the content of a file with a secret. It refuses a file of more than 64 KiB, one that all users of
// the machine can read, and one that users other than its owner can write to. The group may read it, as with Kubernetes
// secrets. Errors never contain the content.
func ReadSecretFile(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", file)
	}
	if mode := info.Mode().Perm(); mode&0o027 != 0 && runtime.GOOS != "windows" {
		return "", fmt.Errorf("%s has mode %04o, so other users can read or change the secret: run chmod 600 %s (or 640 to let its group read it)", file, mode, file)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxSecretFile {
		return "", fmt.Errorf("%s is larger than %d bytes, so it is not a secret", file, maxSecretFile)
	}
	return string(text), nil
}

// ReadToken reads a token or a password from a one-line file. The checks of ReadSecretFile apply. Errors never contain
// the content.
func ReadToken(file string) (string, error) {
	text, err := ReadSecretFile(file)
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
