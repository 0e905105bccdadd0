package ledger

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The ledger contains the key of the approval links, so only its owner may read it, whatever the umask is.
func TestLedgerIsPrivate(t *testing.T) {
	before := syscall.Umask(0) // of the process; no concurrent test creates files
	defer syscall.Umask(before)
	file := filepath.Join(t.TempDir(), "state", "ledger.db")
	for range 2 {
		l, err := openQuietly(t, Config{SQLite: file})
		check(t, err)
		_, err = l.MakeLinkKey(t.Context())
		check(t, err)
		for name, want := range map[string]os.FileMode{
			filepath.Dir(file): 0o750 | os.ModeDir, file: 0o600, file + "-wal": 0o600, file + "-shm": 0o600,
		} {
			info, err := os.Stat(name)
			check(t, err)
			if info.Mode() != want {
				t.Errorf("%s has mode %s, want %s", name, info.Mode(), want)
			}
			if !info.IsDir() {
				check(t, os.Chmod(name, 0o644)) // as an earlier build has left it
			}
		}
		check(t, l.Close())
	}
}

func TestLedgerInADirectoryOfAllIsRefused(t *testing.T) {
	directory := t.TempDir()
	check(t, os.Chmod(directory, 0o777))
	_, err := openQuietly(t, Config{SQLite: filepath.Join(directory, "ledger.db")})
	if err == nil || !strings.Contains(err.Error(), "run chmod 750 "+directory) {
		t.Fatal(err)
	}
	check(t, os.Chmod(directory, 0o777|os.ModeSticky)) // like /tmp: others cannot replace files that are not theirs
	l, err := openQuietly(t, Config{SQLite: filepath.Join(directory, "ledger.db")})
	check(t, err)
	check(t, l.Close())
}
