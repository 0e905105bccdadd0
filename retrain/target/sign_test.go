package target

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

func TestParseKeys(t *testing.T) {
	const other = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	tests := []struct {
		name, text string
		keys       int
		err        string
	}{
		{"one", retraintest.Secret, 1, ""},
		{"line end and space", "  " + retraintest.Secret + "\r\n\n", 1, ""},
		{"rotation", other + "\n" + retraintest.Secret + "\n", 2, ""},
		{"empty", "\n \n", 0, "no secret"},
		{"plain text", "hunter2hunter2hunter2hunter2hunter2", 0, "whsec_ followed by the key in base64"},
		{"asymmetric", "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 0, "whsec_"},
		{"not base64", "whsec_hunter2!", 0, "not base64"},
		{"too short", "whsec_aHVudGVyMg==", 0, "7 bytes"},
		{"too long", "whsec_" + strings.Repeat("AAAA", 22), 0, "66 bytes"},
		{"second line bad", retraintest.Secret + "\nhunter2", 0, "line 2"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			keys, err := parseKeys(tc.text)
			if len(keys) != tc.keys || (err == nil) != (tc.err == "") {
				t.Fatalf("%d keys, error %v", len(keys), err)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("error %q, want %q without the secret", err, tc.err)
			}
		})
	}
}

func TestReadKeysNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trainer.secret")
	check(t, os.WriteFile(file, []byte("plain"), 0o600))
	if _, err := readKeys(file); err == nil || !strings.Contains(err.Error(), file+": line 1") {
		t.Errorf("error %v, want the file and line", err)
	}
}

// TestSignAgainstTheOfficialLibrary compares with the reference implementation, byte for byte.
func TestSignAgainstTheOfficialLibrary(t *testing.T) {
	at := time.Unix(1674087231, 0)
	for _, body := range []string{"", "{}", `{"type":"retrain.requested","data":{"x":"ü"}}`, strings.Repeat("x", 100_000)} {
		hook, err := standardwebhooks.NewWebhook(retraintest.Secret)
		check(t, err)
		want, err := hook.Sign("rr_1", at, []byte(body))
		check(t, err)
		keys, err := parseKeys(retraintest.Secret)
		check(t, err)
		if got := sign(keys, "rr_1", at, []byte(body)); got != want {
			t.Errorf("signature %s, want %s", got, want)
		}
		if got := sign(append(keys, keys[0]), "rr_1", at, []byte(body)); got != want+" "+want {
			t.Errorf("two signatures %s", got)
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add(retraintest.Secret + "\n")
	f.Add("whsec_")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := parseKeys(text)
		if (err == nil) != (len(keys) > 0) {
			t.Fatalf("%d keys, error %v", len(keys), err)
		}
		for _, k := range keys {
			if len(k) < minKeySize || len(k) > maxKeySize {
				t.Errorf("a key of %d bytes was taken", len(k))
			}
		}
	})
}
