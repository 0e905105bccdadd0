package ingest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestSecretFilesOfLooseModesAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, good := range map[os.FileMode]bool{
		0o600: true, 0o400: true, 0o440: true, 0o640: true,
		0o644: false, 0o604: false, 0o660: false, 0o620: false, 0o602: false, 0o601: false, 0o777: false,
	} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		text, err := ingest.ReadSecretFile(file)
		if (err == nil) != good || good && text != "a secret\n" || !good && (!strings.Contains(err.Error(), "chmod 600 "+file) || strings.Contains(err.Error(), "a secret")) {
			t.Errorf("%04o: %q, %v", mode, text, err)
		}
	}
	link := filepath.Join(t.TempDir(), "link") // as Kubernetes makes them: the mode that counts is that of the file
	if err := os.Chmod(file, 0o440); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.ReadSecretFile(link); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"/dev/zero", t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if _, err := ingest.ReadSecretFile(bad); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// A larger file is a mistake, such as the path of a database, of which the first part would be used as the secret.
func TestLargeSecretFilesAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	for size, good := range map[int]bool{64 << 10: true, 64<<10 + 1: false} {
		if err := os.WriteFile(file, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := ingest.ReadSecretFile(file); (err == nil) != good || good && len(text) != size {
			t.Errorf("%d bytes: read %d, %v", size, len(text), err)
		}
	}
}
