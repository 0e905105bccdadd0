package target

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// The sizes of a signing key that Standard Webhooks 1.0.0 allows, in bytes.
const (
	minKeySize = 24
	maxKeySize = 64
	newKeySize = 32
)

const secretPrefix = "whsec_"

// readKeys reads the signing keys of a target, the newest first. Its errors never contain the content of the file.
func readKeys(file string) ([][]byte, error) {
	text, err := ingest.ReadSecretFile(file)
	if err != nil {
		return nil, fmt.Errorf("read webhook secret: %w", err)
	}
	keys, err := parseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("read webhook secret %s: %w", file, err)
	}
	return keys, nil
}

func parseKeys(text string) ([][]byte, error) {
	var keys [][]byte
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, err := parseKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("it contains no secret")
	}
	return keys, nil
}

// NewSecret returns a random secret in the form that a secret file has.
func NewSecret() string {
	key := make([]byte, newKeySize)
	_, _ = rand.Read(key) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

func parseKey(line string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(line, secretPrefix)
	if !ok {
		return nil, errors.New("a secret must have the form whsec_ followed by the key in base64; plain text is not supported")
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("the text after whsec_ is not base64: %w", err)
	}
	if len(key) < minKeySize || len(key) > maxKeySize {
		return nil, fmt.Errorf("the key has %d bytes; Standard Webhooks requires %d to %d", len(key), minKeySize, maxKeySize)
	}
	return key, nil
}

// written returns the keys as written in their file.
func written(keys [][]byte) []string {
	var out []string
	for _, key := range keys {
		out = append(out, base64.StdEncoding.EncodeToString(key))
	}
	return out
}

// sign returns the value of webhook-signature by Standard Webhooks 1.0.0: for each key "v1," and the base64 of
// HMAC-SHA256 over id.timestamp.body, separated by spaces, so that a receiver may have any one of the keys.
func sign(keys [][]byte, id string, at time.Time, body []byte) string {
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
