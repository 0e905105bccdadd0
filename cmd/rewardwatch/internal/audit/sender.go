package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/datadir"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

const (
	lookEvery  = time.Second
	sendWithin = 30 * time.Second // for one batch
	lastWithin = 3 * time.Second  // for the entries that are sent during shutdown
	batchBytes = maxEntry         // approximate size of a request
)

// placeSuffix is appended to the name of the log to name the file that records how far the log was sent.
const placeSuffix = ".sent"

// Topic is the topic of a Sender; kafkalog.Log implements it.
type Topic interface {
	Partitions(ctx context.Context) (int, error)
	Append(ctx context.Context, partition int, records ...kafkalog.Record) error
}

// Sender sends the entries of a log to a Kafka topic, in the order of the file. The file is the outbox: an outage of
// the brokers delays entries but loses none. A file that is renamed within its directory is first sent to its end. A
// crash or a lost answer may cause entries to be sent twice; readers recognize them by the header id. Records have no
// key, so that brokers refuse them for a compacted topic, which would lose all entries but one.
type Sender struct {
	log     *Log
	topic   Topic
	host    string // decides the partition, so that the entries of an instance keep their order
	unsent  prometheus.Gauge
	service zerolog.Logger
}

// place records how far a log was sent.
type place struct {
	Inode   uint64    `json:"inode"`   // inode of the file
	Head    string    `json:"head"`    // head of the file when it was read
	Offset  int64     `json:"offset"`  // number of bytes that were sent
	Changed time.Time `json:"changed"` // when the file had last been modified
}

// NewSender returns a Sender for a log, which Run starts, and registers its metric.
func NewSender(log *Log, topic Topic, service zerolog.Logger, reg prometheus.Registerer) (*Sender, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	s := &Sender{
		log: log, topic: topic, host: host, service: service,
		unsent: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: names.MetricAuditUnsent, Help: "Bytes of the audit log that are not yet in its Kafka topic.",
		}),
	}
	reg.MustRegister(s.unsent)
	return s, nil
}

// Run sends appended entries until ctx ends. It logs failures and tries again.
func (s *Sender) Run(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for failed := ""; ; {
		err := s.send(ctx)
		switch {
		case err == nil:
			failed = ""
		case ctx.Err() == nil && err.Error() != failed: // once per reason
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

// Finish sends the entries that were appended since Run ended, within a few seconds. The rest waits for the next start.
func (s *Sender) Finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWithin)
	defer cancel()
	if err := s.send(ctx); err != nil {
		s.service.Warn().Err(err).Msg("failed to send the rest of the audit log; it will be sent after a restart")
	}
}

// send sends all entries that have not been sent.
func (s *Sender) send(ctx context.Context) error {
	for {
		files, err := s.log.files()
		if err != nil {
			return err
		}
		at, i, err := s.where(files)
		if err != nil || i < 0 {
			return err
		}
		s.unsent.Set(float64(sizeOf(files[i:]) - at.Offset))
		size, err := s.sendBatch(ctx, &files[i], &at)
		done := false
		if err == nil && size == 0 {
			done, err = s.next(at)
		}
		if done || err != nil && !errors.Is(err, errMoved) {
			return err
		}
	}
}

// where returns how far the log was sent, and the index of the file in which that is, as find does. It stores a new
// place at once, so that the file can be found even after it was renamed.
func (s *Sender) where(files []file) (at place, i int, err error) {
	if at, err = s.place(); err != nil {
		s.unsent.Set(float64(sizeOf(files)))
		return at, -1, err
	}
	before := at
	if i = s.find(files, &at); at != before {
		err = s.keep(at)
	}
	return at, i, err
}

// find returns the index of the file of a place, or -1 if there is none. If that file no longer exists, the place
// becomes the beginning of the first file that was modified since.
func (s *Sender) find(files []file, at *place) int {
	for i := range files {
		if f := &files[i]; f.inode == at.Inode && (f.head == at.Head || at.Head == "") && f.size >= at.Offset {
			return i
		}
	}
	last := len(files) - 1
	if last < 0 {
		return -1
	}
	i := last
	if at.Inode != 0 {
		s.service.Error().Str("audit_log", s.log.path).
			Msg("the audit log was removed, compressed or emptied while it was being sent to Kafka: its last entries may be missing there")
		for i = 0; i < last && !files[i].changed.After(at.Changed); i++ {
		}
	}
	*at = place{Inode: files[i].inode}
	return i
}

// next moves the place behind a file that is complete. It reports whether there is no such file.
func (s *Sender) next(at place) (done bool, err error) {
	s.log.mu.Lock() // so that no entry is being written to a file that was just renamed
	defer s.log.mu.Unlock()
	files, err := s.log.files()
	if err != nil {
		return false, err
	}
	i := s.find(files, &at)
	if i < 0 || i == len(files)-1 {
		return true, nil
	}
	rest, err := files[i].lines(at.Offset, 1)
	if err != nil || len(rest) > 0 {
		return false, err
	}
	if size := files[i].size - at.Offset; size > 0 {
		s.service.Error().Str("file", files[i].path).Int64("bytes", size).Msg("the audit log ends with an incomplete entry, which is not sent to Kafka")
	}
	return false, s.keep(place{Inode: files[i+1].inode})
}

// sendBatch sends lines of a file from a place on, moves the place behind them, and returns their size in bytes.
func (s *Sender) sendBatch(ctx context.Context, f *file, at *place) (size int64, err error) {
	lines, err := f.lines(at.Offset, batchBytes)
	if err != nil || len(lines) == 0 {
		return 0, err
	}
	batch := make([]kafkalog.Record, len(lines))
	for i, line := range lines {
		size += int64(len(line))
		sum := sha256.Sum256(line)
		batch[i] = kafkalog.Record{Value: bytes.TrimSuffix(line, []byte("\n")), Headers: []ingest.Header{
			{Key: "id", Value: []byte(hex.EncodeToString(sum[:16]))}, {Key: "host", Value: []byte(s.host)},
		}}
	}
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	n, err := s.topic.Partitions(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.topic.Append(ctx, kafkalog.PartitionOf([]byte(s.host), n), batch...); err != nil {
		return 0, err
	}
	at.Offset, at.Head, at.Changed = at.Offset+size, f.head, f.changed
	return size, s.keep(*at)
}

// place returns how far the log was sent, or the zero place if it has never been sent.
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
	if err := datadir.Replace(s.log.path+placeSuffix, text, 0o600); err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	return nil
}
