package checkpoint

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

func wantParts(t *testing.T, s *Store, names []string, want ...string) {
	t.Helper()
	got, err := s.LoadParts("bank-a", names)
	if err != nil || !maps.EqualFunc(got, parts(want...), samePart) {
		t.Fatalf("parts %q, %v, want %q", got, err, want)
	}
}

func TestPartsAreLoadedAsTheLastSaveLeftThem(t *testing.T) {
	directory := openDirectory(t, t.TempDir())
	for name, backend := range map[string]Backend{"directory": directory, "whole segments": ingesttest.NewSegments()} {
		t.Run(name, func(t *testing.T) {
			s := openStore(backend)
			mustSave(t, s, "bank-a", parts("x", "one", "y", "two", "empty", ""))
			mustSave(t, s, "bank-a", parts("y", "deux"))
			wantParts(t, s, []string{"x", "y"}, "x", "one", "y", "deux")
			wantParts(t, s, []string{"empty"}, "empty", "")
			s = openStore(backend)
			if _, err := s.Load("bank-a"); err != nil {
				t.Fatal(err)
			}
			wantParts(t, s, []string{"y"}, "y", "deux")
			mustSave(t, s, "bank-a", nil, "x")
			if _, err := s.LoadParts("bank-a", []string{"y", "x"}); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a part that is gone: %v", err)
			}
		})
	}
}

// Only a copy of the very same part takes the place of one that is damaged.
func TestADamagedPartIsTakenFromItsCopyOrRefused(t *testing.T) {
	d := openDirectory(t, t.TempDir())
	s := openStore(d)
	mustSave(t, s, "bank-a", parts("x", "one", "y", "two"))
	spoil := func(generation uint64) {
		t.Helper()
		segment, err := d.Get("bank-a", generation)
		if err != nil {
			t.Fatal(err)
		}
		segment[len(segment)-checksumSize-1] ^= 1
		if err := os.WriteFile(d.Where("bank-a", generation), segment, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustSave(t, s, "bank-a", parts("y", "deux"))
	spoil(2)
	if got, err := s.LoadParts("bank-a", []string{"y"}); !isDamage(err) {
		t.Errorf("an older part was taken for it: %q, %v", got, err)
	}
	mustSave(t, s, "bank-a", parts("y", "drei", "a", "three"))
	mustSave(t, s, "bank-a", nil) // 4 has a copy of what is in 3
	spoil(4)
	wantParts(t, s, []string{"y"}, "y", "drei")
	if err := os.Truncate(d.Where("bank-a", 4), 40); err != nil {
		t.Fatal(err)
	}
	wantParts(t, s, []string{"y"}, "y", "drei")
	if err := os.Remove(d.Where("bank-a", 4)); err != nil {
		t.Fatal(err)
	}
	wantParts(t, s, []string{"y"}, "y", "drei")
	spoil(3)
	if _, err := s.LoadParts("bank-a", []string{"y"}); !isDamage(err) {
		t.Errorf("both copies are damaged: %v", err)
	}
	wantParts(t, s, []string{"x"}, "x", "one")
}
