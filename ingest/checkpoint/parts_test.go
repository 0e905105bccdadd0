package checkpoint

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
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

// Only a copy of the same part can replace a damaged one.
func TestADamagedPartIsTakenFromItsCopyOrRefused(t *testing.T) {
	d := openDirectory(t, t.TempDir())
	s := openStore(d)
	mustSave(t, s, "bank-a", parts("x", "one", "y", "two"))
	spoil := func(generation uint64, part string) {
		t.Helper()
		segment, err := d.Get("bank-a", generation)
		if err != nil {
			t.Fatal(err)
		}
		segment[bytes.Index(segment, []byte(part))] ^= 1
		if err := os.WriteFile(d.Where("bank-a", generation), segment, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustSave(t, s, "bank-a", parts("y", "deux"))
	spoil(2, "deux")
	if got, err := s.LoadParts("bank-a", []string{"y"}); !isDamage(err) {
		t.Errorf("an older part was taken for it: %q, %v", got, err)
	}
	mustSave(t, s, "bank-a", parts("y", "drei", "a", "three"))
	mustSave(t, s, "bank-a", nil) // 4 has a copy of the content of 3
	spoil(4, "drei")
	wantParts(t, s, []string{"y"}, "y", "drei")
	if err := os.Truncate(d.Where("bank-a", 4), 40); err != nil {
		t.Fatal(err)
	}
	wantParts(t, s, []string{"y"}, "y", "drei")
	if err := os.Remove(d.Where("bank-a", 4)); err != nil {
		t.Fatal(err)
	}
	wantParts(t, s, []string{"y"}, "y", "drei")
	spoil(3, "drei")
	if _, err := s.LoadParts("bank-a", []string{"y"}); !isDamage(err) {
		t.Errorf("both copies are damaged: %v", err)
	}
	wantParts(t, s, []string{"x"}, "x", "one")
}

// slowReader is a backend that returns segments only when it is allowed to continue.
type slowReader struct {
	*ingesttest.Segments
	asked, answer chan struct{}
}

func (s *slowReader) Get(name string, generation uint64) ([]byte, error) {
	s.asked <- struct{}{}
	<-s.answer
	return s.Segments.Get(name, generation)
}

// A reader of parts on a slow backend does not delay saves. If the parts that it reads are removed in the meantime, it
// reads the saved ones.
func TestASaveDoesNotWaitForAReader(t *testing.T) {
	backend := &slowReader{ingesttest.NewSegments(), make(chan struct{}), make(chan struct{})}
	s := openStore(backend)
	mustSave(t, s, "bank-a", parts("x", "one"))
	type answer struct {
		parts ingest.Parts
		err   error
	}
	read := make(chan answer, 1)
	go func() {
		got, err := s.LoadParts("bank-a", []string{"x"})
		read <- answer{got, err}
	}()
	<-backend.asked
	saved := make(chan struct{})
	go func() {
		defer close(saved)
		for _, text := range []string{"two", "three", "four"} {
			mustSave(t, s, "bank-a", parts("x", text))
		}
	}()
	select {
	case <-saved:
	case <-time.After(time.Minute):
		t.Fatal("the saves wait for the reader")
	}
	backend.answer <- struct{}{}
	<-backend.asked // again, because the first segment no longer exists
	backend.answer <- struct{}{}
	if got := <-read; got.err != nil || string(got.parts["x"]) != "four" {
		t.Errorf("it read %q, %v", got.parts["x"], got.err)
	}
}
