package ledger

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inUse names the ledger that another process opens in TestALedgerThatIsInUseIsRefused.
const inUse = "REWARDWATCH_TEST_LEDGER_IN_USE"

// A ledger on SQLite belongs to one process at a time.
func TestALedgerThatIsInUseIsRefused(t *testing.T) {
	if file := os.Getenv(inUse); file != "" {
		if _, err := openQuietly(t, Config{SQLite: file}); !errors.Is(err, errInUse) || !strings.Contains(err.Error(), file) {
			t.Errorf("error %v, want %v and the file", err, errInUse)
		}
		return
	}
	cfg := onSQLite(t)
	first, err := openQuietly(t, cfg)
	check(t, err)
	other := exec.Command(os.Args[0], "-test.run", "^TestALedgerThatIsInUseIsRefused$")
	other.Env = append(os.Environ(), inUse+"="+cfg.SQLite)
	if said, err := other.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	check(t, first.Close())
	second, err := openQuietly(t, cfg)
	check(t, err)
	check(t, second.Close())
}

// A damaged file is refused at the start, with an error that says what to do.
func TestADamagedLedgerIsRefused(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"another file":  func([]byte) []byte { return bytes.Repeat([]byte("no database "), 1000) },
		"pages of zero": func(b []byte) []byte { clear(b[4096:12288]); return b },
		"pages of dust": func(b []byte) []byte { copy(b[len(b)/2:], bytes.Repeat([]byte{0xa5}, len(b)/2)); return b },
		"cut short":     func(b []byte) []byte { return b[:len(b)/2] },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := onSQLite(t)
			l, err := openQuietly(t, cfg)
			check(t, err)
			check(t, l.Close())
			file, err := os.ReadFile(cfg.SQLite)
			check(t, err)
			check(t, os.WriteFile(cfg.SQLite, damage(file), 0o600))
			if _, err = openQuietly(t, cfg); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), cfg.SQLite) {
				t.Fatalf("error %v, want %v and the file", err, errDamaged)
			}
			check(t, os.Remove(cfg.SQLite)) // as the error says
			l, err = openQuietly(t, cfg)
			check(t, err)
			check(t, l.Close())
		})
	}
}

// Damage that a transaction finds is reported as such, without waiting.
func TestALedgerThatIsDamagedUnderWay(t *testing.T) {
	cfg := Config{SQLite: filepath.Join(t.TempDir(), "ledger.db")}
	check(t, os.WriteFile(cfg.SQLite, bytes.Repeat([]byte("no database "), 1000), 0o600))
	l, err := openSQLite(cfg)
	check(t, err)
	defer l.Close()
	l.tell.Waits = func(err error, _ time.Duration) { t.Errorf("the ledger waits: %v", err) }
	if err := l.Update(t.Context(), func(*Tx) error { return nil }); !errors.Is(err, errDamaged) {
		t.Errorf("error %v, want %v", err, errDamaged)
	}
}
