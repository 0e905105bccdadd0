package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

// memory is a topic of three partitions in memory.
type memory struct {
	mu         sync.Mutex
	down       error
	after      func() // called once after records have been written, before the response
	entries    []string
	ids        map[string]int
	partitions map[int]bool
}

func (m *memory) Partitions(context.Context) (int, error) { return 3, nil }

func (m *memory) Append(_ context.Context, partition int, records ...kafkalog.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down != nil {
		return m.down
	}
	if m.ids == nil {
		m.ids, m.partitions = map[string]int{}, map[int]bool{}
	}
	m.partitions[partition] = true
	for _, r := range records {
		var e Entry
		if err := json.Unmarshal(r.Value, &e); err != nil {
			return err
		}
		m.entries = append(m.entries, e.Who)
		m.ids[string(r.Headers[0].Value)]++
	}
	if m.after != nil {
		m.after()
		m.after = nil
	}
	return nil
}

func (m *memory) setDown(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = err
}

// want checks which entries the topic contains.
func (m *memory) want(t *testing.T, who ...string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.entries, who) {
		t.Errorf("the topic has %v, want %v", m.entries, who)
	}
}

// bench is a log with a topic.
type bench struct {
	*testing.T
	*Log
	topic   *memory
	service strings.Builder
	reg     *prometheus.Registry
}

func newBench(t *testing.T) *bench {
	t.Helper()
	log, err := Open(filepath.Join(t.TempDir(), "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	return &bench{T: t, Log: log, topic: &memory{}}
}

func (b *bench) append(who ...string) {
	b.Helper()
	for _, w := range who {
		if err := b.Append(Entry{Who: w}, false); err != nil {
			b.Fatal(err)
		}
	}
}

func (b *bench) rename(from, to string) {
	b.Helper()
	if err := os.Rename(b.path+from, b.path+to); err != nil {
		b.Fatal(err)
	}
}

// sender returns a sender like after a start of the service.
func (b *bench) sender() *Sender {
	b.Helper()
	b.reg = prometheus.NewRegistry()
	s, err := NewSender(b.Log, b.topic, zerolog.New(&b.service), b.reg)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func (b *bench) send(s *Sender) {
	b.Helper()
	if err := s.send(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func TestEntriesAreSentOnceInOrder(t *testing.T) {
	b := newBench(t)
	b.append("a", "b")
	s := b.sender()
	b.send(s)
	b.send(s)
	b.append("c")
	b.send(b.sender()) // after a restart
	b.topic.want(t, "a", "b", "c")
	if len(b.topic.ids) != 3 || len(b.topic.partitions) != 1 {
		t.Errorf("ids %v in partitions %v", b.topic.ids, b.topic.partitions)
	}
}

func TestManyEntriesAreSentInBatches(t *testing.T) {
	b := newBench(t)
	long, want := strings.Repeat("x", 4<<10), []string(nil)
	for i := range 300 {
		want = append(want, fmt.Sprint(i))
		if err := b.Append(Entry{Who: fmt.Sprint(i), Error: long}, false); err != nil {
			t.Fatal(err)
		}
	}
	b.send(b.sender())
	b.topic.want(t, want...)
}

func TestAnOutageLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.topic.down = errors.New("no broker answers")
		s := b.sender()
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.Run(ctx) })
		b.append("a")
		time.Sleep(3 * lookEvery)
		if n := testutil.ToFloat64(s.unsent); n == 0 {
			t.Error("nothing is reported as unsent")
		}
		if n := strings.Count(b.service.String(), "no broker answers"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, b.service.String())
		}
		b.append("b")
		b.topic.setDown(nil)
		time.Sleep(2 * lookEvery)
		b.topic.want(t, "a", "b")
		if n := testutil.ToFloat64(s.unsent); n != 0 {
			t.Errorf("%v bytes are reported as unsent", n)
		}
		stop()
		running.Wait()
	})
}

// A crash between writing to the topic and recording it repeats entries, with the same IDs.
func TestARepeatedEntryHasItsID(t *testing.T) {
	b := newBench(t)
	b.append("a")
	place := b.path + placeSuffix
	b.topic.after = func() {
		if err := os.Mkdir(place+".tmp", 0o700); err != nil {
			t.Error(err)
		}
	}
	s := b.sender()
	if err := s.send(t.Context()); !errors.Is(err, ErrLog) {
		t.Fatalf("the note failed with %v", err)
	}
	if err := os.Remove(place + ".tmp"); err != nil {
		t.Fatal(err)
	}
	b.send(b.sender())
	b.topic.want(t, "a", "a")
	if len(b.topic.ids) != 1 {
		t.Errorf("ids %v", b.topic.ids)
	}
}

func TestRotatedFilesAreSentToTheirEnd(t *testing.T) {
	for name, rotate := range map[string]func(b *bench, s *Sender){
		"while it is up": func(b *bench, s *Sender) {
			b.append("a")
			b.send(s)
			b.append("b")
			b.rename("", ".1")
			b.append("c")
		},
		"before anything was sent": func(b *bench, s *Sender) {
			b.append("a")
			b.topic.setDown(errors.New("down"))
			if s.send(b.Context()) == nil {
				b.Error("sent while the broker was down")
			}
			b.topic.setDown(nil)
			b.append("b")
			b.rename("", "-20261128")
			b.append("c")
		},
		"twice": func(b *bench, s *Sender) {
			b.append("a")
			b.send(s)
			b.rename("", ".1")
			b.append("b")
			later(b, ".1", -time.Hour)
			b.rename(".1", ".2")
			b.rename("", ".1")
			later(b, ".1", -time.Minute)
			b.append("c")
		},
		"without a new entry": func(b *bench, s *Sender) {
			b.append("a", "b")
			b.rename("", ".1")
			b.send(s)
			b.append("c")
		},
		"through a link": func(b *bench, s *Sender) {
			b.link()
			b.append("a")
			b.send(s)
			b.append("b")
			b.rename(".target", ".target.1")
			b.append("c")
		},
		"beside files of others": func(b *bench, s *Sender) {
			for _, name := range []string{"-b.log", ".bak", "~", ".1.gz"} {
				if err := os.WriteFile(b.path+name, []byte(`{"who":"x"}`+"\n"), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			b.append("a")
			b.send(s)
			b.append("b")
			b.rename("", ".1")
			b.append("c")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.sender()
			b.send(s)
			rotate(b, s)
			b.send(s)
			b.send(b.sender())
			b.topic.want(t, "a", "b", "c")
			if said := b.service.String(); said != "" {
				t.Errorf("the service said %s", said)
			}
		})
	}
}

// link makes the log a link to another file.
func (b *bench) link() {
	b.Helper()
	b.rename("", ".target")
	if err := os.Symlink(b.path+".target", b.path); err != nil {
		b.Fatal(err)
	}
}

// later sets the modification time of a file to a time before now.
func later(b *bench, suffix string, by time.Duration) {
	b.Helper()
	at := time.Now().Add(by)
	if err := os.Chtimes(b.path+suffix, at, at); err != nil {
		b.Fatal(err)
	}
}

// An entry that is being written while its file is renamed is sent with that file.
func TestAnEntryIsWrittenWhileItsFileIsRenamed(t *testing.T) {
	b := newBench(t)
	s := b.sender()
	b.append("a")
	b.send(s)
	open, err := b.open()
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock() // like Append
	b.rename("", ".1")
	if f, err := os.Create(b.path); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	sent := make(chan error)
	go func() { sent <- s.send(t.Context()) }()
	if _, err := open.WriteString(`{"who":"b"}` + "\n"); err != nil || open.Close() != nil {
		t.Fatal(err)
	}
	b.mu.Unlock()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	b.append("c")
	b.send(s)
	b.topic.want(t, "a", "b", "c")
}

// An entry that brokers would refuse because of its size would block all later ones.
func TestStatesThatAreTooLargeAreOmitted(t *testing.T) {
	b := newBench(t)
	if err := b.Append(Entry{Who: "a", Before: strings.Repeat("x", maxEntry), After: "y"}, false); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(b.path)
	var e Entry
	if err != nil || json.Unmarshal(text, &e) != nil || e.Who != "a" || e.Before != tooLarge || e.After != tooLarge {
		t.Errorf("%.200s, %v", text, err)
	}
}

// Entries that are appended while the service stops are sent before it ends.
func TestTheLastEntriesAreSent(t *testing.T) {
	b := newBench(t)
	s := b.sender()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	s.Run(ctx)
	b.append("a")
	s.Finish(t.Context())
	b.topic.want(t, "a")
}

func TestWhatCannotBeSentIsSaid(t *testing.T) {
	for name, rotate := range map[string]func(b *bench){
		"a file that was compressed": func(b *bench) { b.rename("", ".1.gz") },
		"a file that was compressed, and another waits": func(b *bench) {
			b.rename("", ".2.gz")
			b.append("c")
			b.rename("", ".1")
		},
		"a file that was emptied": func(b *bench) {
			if err := os.Truncate(b.path, 0); err != nil {
				b.Fatal(err)
			}
		},
		"a file that was emptied and is longer now": func(b *bench) {
			if err := os.Truncate(b.path, 0); err != nil {
				b.Fatal(err)
			}
			b.append("c", "d", "e")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.sender()
			b.append("a")
			b.send(s)
			b.append("b")
			later(b, "", -time.Hour)
			rotate(b)
			b.append("f")
			b.send(s)
			all := strings.Join(b.topic.entries, "")
			if !strings.HasPrefix(all, "a") || !strings.HasSuffix(all, "f") || strings.Contains(all, "b") || strings.Contains(name, "waits") != strings.Contains(all, "acf") {
				t.Errorf("the topic has %v", b.topic.entries)
			}
			if said := b.service.String(); strings.Count(said, "entries may be missing there") != 1 {
				t.Errorf("the service said %q", said)
			}
		})
	}
	t.Run("a part of an entry", func(t *testing.T) {
		b := newBench(t)
		b.append("a")
		f, err := b.open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(`{"who":`); err != nil || f.Close() != nil {
			t.Fatal(err)
		}
		s := b.sender()
		b.send(s)
		b.rename("", ".1")
		b.append("c")
		b.send(s)
		b.topic.want(t, "a", "c")
		if said := b.service.String(); !strings.Contains(said, "ends with an incomplete entry") {
			t.Errorf("the service said %q", said)
		}
	})
	t.Run("a damaged place", func(t *testing.T) {
		b := newBench(t)
		b.append("a")
		if err := os.WriteFile(b.path+placeSuffix, []byte(`{"inode":`), 0o600); err != nil {
			t.Fatal(err)
		}
		s := b.sender()
		if err := s.send(t.Context()); !errors.Is(err, ErrLog) || !strings.Contains(err.Error(), "remove "+b.path+placeSuffix) {
			t.Errorf("error %v", err)
		}
		if n := testutil.ToFloat64(s.unsent); n == 0 {
			t.Error("nothing is reported as unsent")
		}
	})
}
