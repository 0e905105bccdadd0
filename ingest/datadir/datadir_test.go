package datadir

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	for _, content := range []string{"a long first content", "short"} {
		if err := Replace(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("the file has %q (%v), want %q", got, err, content)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the mode is %v (%v), want 0600", info.Mode(), err)
	}
	wantFiles(t, filepath.Dir(path), "state")
}

func TestReplaceFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil { // a directory, so the rename fails
		t.Fatal(err)
	}
	if err := Replace(path, []byte("x"), 0o600); err == nil {
		t.Error("a directory with files was replaced by a file")
	}
	wantFiles(t, path, "full")
	if err := Replace(filepath.Join(path, "missing", "file"), []byte("x"), 0o600); err == nil {
		t.Error("a file was written in a directory that does not exist")
	}
}

func wantFiles(t *testing.T, directory string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if len(got) != len(want) || got[0] != want[0] {
		t.Errorf("the directory has %v, want %v", got, want)
	}
}
