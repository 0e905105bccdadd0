package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

const (
	lookEvery  = time.Second
	sendWithin = 30 * time.Second // of one batch
	batchBytes = 512 << 10        // about what one batch holds
)

// compressed are the extensions of files that are no text any more.
var compressed = []string{".gz", ".bz2", ".xz", ".zst"}

// placeSuffix follows the name of the log in that of the file that says how far it was sent.
const placeSuffix = ".sent"

// Topic is where a Sender sends, as kafkalog.Log implements it.
type Topic interface {
	Partitions(ctx context.Context) (int, error)
	Append(ctx context.Context, partition int, records ...kafkalog.Record) error
}

// Sender sends the entries of a log to a Kafka topic, in the order of the file, which is the outbox: an outage of the
// brokers delays entries and loses none. A file that is renamed in its directory is sent to its end first. A crash, or an
// answer that is lost, may send entries twice; readers know them by the header id.
type Sender struct {
	log     *Log
	topic   Topic
	key     string // of the records: the host, so that the entries of an instance keep their order
	unsent  prometheus.Gauge
	service zerolog.Logger
}

// place is how far a log was sent.
type place struct {
	Inode  uint64 `json:"inode"`  // of the file
	Offset int64  `json:"offset"` // bytes of it that were sent
}

// NewSender returns a Sender of a log that has not begun, and registers its metric.
func NewSender(log *Log, topic Topic, service zerolog.Logger, reg prometheus.Registerer) (*Sender, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	s := &Sender{
		log: log, topic: topic, key: host, service: service,
		unsent: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: names.MetricAuditUnsent, Help: "Bytes of the audit log that are not yet in its Kafka topic.",
		}),
	}
	reg.MustRegister(s.unsent)
	return s, nil
}

// Run sends what is appended until ctx ends. What fails is logged and tried again.
func (s *Sender) Run(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for failed := ""; ; {
		err := s.send(ctx)
		switch {
		case err == nil:
			failed = ""
		case ctx.Err() == nil && err.Error() != failed: // once for each reason
			failed = err.Error()
			s.service.Error().Err(err).Msg("failed to send the audit log, retrying")
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// send sends all that is not yet sent.
func (s *Sender) send(ctx context.Context) error {
	for {
		at, err := s.place()
		if err != nil {
			return err
		}
		path, err := s.find(&at)
		if err != nil || path == "" {
			return err
		}
		if err := s.sendFile(ctx, path, &at); err != nil {
			return err
		}
		next, err := s.next(path, at)
		if err != nil || next == nil {
			return err
		}
		if err := s.keep(*next); err != nil {
			return err
		}
	}
}

// find returns the path of the file that a place is in: the log, or the name it was given since. If that file is gone,
// the place becomes the beginning of the log. The path is "" while there is none.
func (s *Sender) find(at *place) (string, error) {
	files, err := s.files()
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if f.inode == at.Inode {
			if f.size < at.Offset { // it was emptied
				at.Offset = 0
			}
			return f.path, nil
		}
	}
	if at.Inode != 0 {
		s.service.Error().Str("audit_log", s.log.path).
			Msg("the audit log was removed or compressed before all of it was sent to Kafka, so the rest of that file is not sent")
	}
	if len(files) == 0 {
		return "", nil
	}
	last := files[len(files)-1]
	*at = place{Inode: last.inode}
	return last.path, s.keep(*at)
}

// next returns where to go on after the end of a file, nil if entries are still appended to it.
func (s *Sender) next(path string, at place) (*place, error) {
	s.log.mu.Lock() // so that no entry is being written to a file that was just renamed
	defer s.log.mu.Unlock()
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(files, func(f file) bool { return f.inode == at.Inode })
	if i < 0 || i == len(files)-1 {
		return nil, nil
	}
	if more, err := hasLine(path, at.Offset); err != nil || more {
		return &at, err
	}
	return &place{Inode: files[i+1].inode}, nil
}

// file is the log, or what it was before it was renamed.
type file struct {
	path    string
	inode   uint64
	size    int64
	changed time.Time
}

// files returns the files in the order of their entries, with the log as the last. Compressed files are left out.
func (s *Sender) files() (all []file, err error) {
	directory, base := filepath.Split(s.log.path)
	entries, err := os.ReadDir(cmp.Or(directory, "."))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	for _, e := range entries {
		name := e.Name()
		rest, is := strings.CutPrefix(name, base)
		if !is || rest == "" || strings.HasPrefix(rest, placeSuffix) || slices.Contains(compressed, filepath.Ext(name)) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			all = append(all, fileOf(directory+name, info))
		}
	}
	slices.SortStableFunc(all, func(a, b file) int { return a.changed.Compare(b.changed) })
	info, err := os.Stat(s.log.path)
	if errors.Is(err, fs.ErrNotExist) { // renamed, and nothing was appended since
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	return append(all, fileOf(s.log.path, info)), nil
}

func fileOf(path string, info fs.FileInfo) file {
	f := file{path: path, size: info.Size(), changed: info.ModTime()}
	if status, is := info.Sys().(*syscall.Stat_t); is {
		f.inode = status.Ino
	}
	return f
}

// hasLine reports whether a file has a whole line behind an offset.
func hasLine(path string, offset int64) (bool, error) {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err == nil {
		_, err = bufio.NewReader(f).ReadSlice('\n')
	}
	switch {
	case err == nil, errors.Is(err, bufio.ErrBufferFull):
		return true, nil
	case errors.Is(err, io.EOF):
		return false, nil
	}
	return false, fmt.Errorf("%w: %w", ErrLog, err)
}

// sendFile sends the lines of a file from a place on, and moves the place behind what was sent.
func (s *Sender) sendFile(ctx context.Context, path string, at *place) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	defer f.Close()
	if _, err := f.Seek(at.Offset, io.SeekStart); err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	lines := bufio.NewReader(f)
	for {
		batch, size, err := s.batch(lines)
		if err != nil {
			return err
		}
		s.measure(f, at.Offset)
		if len(batch) == 0 {
			return nil
		}
		if err := s.produce(ctx, batch); err != nil {
			return err
		}
		at.Offset += size
		if err := s.keep(*at); err != nil {
			return err
		}
	}
}

// batch returns some whole lines as records, and their size in the file.
func (s *Sender) batch(lines *bufio.Reader) (batch []kafkalog.Record, size int64, err error) {
	for size < batchBytes {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a line without its end is still being written
			break
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%w: %w", ErrLog, err)
		}
		size += int64(len(line))
		sum := sha256.Sum256(line)
		batch = append(batch, kafkalog.Record{
			Key: []byte(s.key), Value: bytes.TrimSuffix(line, []byte("\n")),
			Headers: []ingest.Header{{Key: "id", Value: []byte(hex.EncodeToString(sum[:16]))}},
		})
	}
	return batch, size, nil
}

func (s *Sender) produce(ctx context.Context, batch []kafkalog.Record) error {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	n, err := s.topic.Partitions(ctx)
	if err != nil {
		return err
	}
	return s.topic.Append(ctx, kafkalog.PartitionOf([]byte(s.key), n), batch...)
}

// measure sets the metric to what follows an offset.
func (s *Sender) measure(f *os.File, offset int64) {
	if info, err := f.Stat(); err == nil {
		s.unsent.Set(float64(info.Size() - offset))
	}
}

// place returns how far the log was sent before, nowhere if never.
func (s *Sender) place() (at place, err error) {
	text, err := os.ReadFile(s.log.path + placeSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return at, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	if err != nil {
		return at, fmt.Errorf("%w: %w; remove %s to send the whole log again", ErrLog, err, s.log.path+placeSuffix)
	}
	return at, nil
}

// keep stores how far the log was sent.
func (s *Sender) keep(at place) error {
	text, err := json.Marshal(at)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	file := s.log.path + placeSuffix
	if err := errors.Join(writeSynced(file+".tmp", text), os.Rename(file+".tmp", file)); err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	return nil
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}
