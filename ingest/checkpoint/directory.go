// Package checkpoint keeps named snapshots durably: what is loaded is byte for byte what was saved last, or an error.
package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
)

var _ ingest.CheckpointStore = (*Directory)(nil)

// ErrLocked says that another process uses the directory.
var ErrLocked = errors.New("the checkpoint directory is in use")

// temporary is the pattern of files that are being written. They never count: a crash before the rename leaves the
// snapshot before it in place.
const temporary = "*" + suffix + ".tmp"

// Directory is a store of one file a name. It belongs to one process at a time. Its methods may be called by several
// goroutines.
type Directory struct {
	path    string
	lock    *os.File
	create  func(directory, pattern string) (*os.File, error)
	metrics *metrics
}

// NewDirectory opens the store, makes the directory where it is missing, and removes what writes that were cut short
// have left. The error is ErrLocked while another process has it open. Close lets go of it.
func NewDirectory(path string, reg prometheus.Registerer) (*Directory, error) {
	if err := os.MkdirAll(path, 0o750); err != nil {
		return nil, fmt.Errorf("making the checkpoint directory: %w", err)
	}
	held, err := lock(path)
	if err != nil {
		return nil, err
	}
	if err := removeTemporary(path); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return &Directory{path: path, lock: held, create: os.CreateTemp, metrics: newMetrics(reg)}, nil
}

func removeTemporary(path string) error {
	left, err := filepath.Glob(filepath.Join(escapeGlob(path), temporary))
	if err != nil {
		return fmt.Errorf("looking for unfinished checkpoints: %w", err)
	}
	for _, file := range left {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("removing an unfinished checkpoint: %w", err)
		}
	}
	return nil
}

// escapeGlob takes the meaning from the characters of a path that would be read as a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Close lets another process open the directory. Nothing may be saved afterwards.
func (d *Directory) Close() error {
	if err := d.lock.Close(); err != nil {
		return fmt.Errorf("unlocking the checkpoint directory: %w", err)
	}
	return nil
}

// Load gives the snapshot saved last under a name. The error is fs.ErrNotExist where there is none, and a
// *DamagedError where the file is not what Save wrote for this name.
func (d *Directory) Load(name string) ([]byte, error) {
	path := d.file(name)
	held, snapshot, err := read(path)
	if err == nil && held != name {
		err = &DamagedError{Path: path, Why: fmt.Sprintf("it holds %q and not %q", held, name)}
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			d.metrics.failures.WithLabelValues(kindOf(name)).Inc()
		}
		return nil, err
	}
	return snapshot, nil
}

func read(path string) (name string, snapshot []byte, err error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return "", nil, fmt.Errorf("reading a checkpoint: %w", err)
	}
	name, snapshot, why := open(file)
	if why != "" {
		return "", nil, &DamagedError{Path: path, Why: why}
	}
	return name, snapshot, nil
}

// Save keeps a snapshot under a name in place of the one before. It returns when the snapshot is on the disk; after an
// error the one before still holds.
func (d *Directory) Save(name string, snapshot []byte) error {
	if err := d.save(name, snapshot); err != nil {
		d.metrics.failures.WithLabelValues(kindOf(name)).Inc()
		return fmt.Errorf("saving checkpoint %q: %w", name, err)
	}
	d.metrics.bytes.WithLabelValues(kindOf(name)).Set(float64(len(snapshot)))
	return nil
}

func (d *Directory) save(name string, snapshot []byte) error {
	if name == "" {
		return errors.New("it has no name")
	}
	f, err := d.create(d.path, temporary)
	if err != nil {
		return err
	}
	if err := write(f, header(name, snapshot), snapshot); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), d.file(name)); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return d.sync()
}

// write fills the file, and closes it once its bytes are on the disk: renamed before that, it could take the place of
// a good checkpoint and be empty after a power cut.
func write(f *os.File, parts ...[]byte) error {
	for _, p := range parts {
		if _, err := f.Write(p); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// sync makes renames and removals last.
func (d *Directory) sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Names lists the names that begin with a prefix and have a snapshot, sorted.
func (d *Directory) Names(prefix string) ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("listing checkpoints: %w", err)
	}
	var names []string
	for _, entry := range entries {
		name, whole, ok := nameOf(entry.Name())
		if !ok {
			continue
		}
		if !whole {
			if name, _, err = read(filepath.Join(d.path, entry.Name())); err != nil {
				return nil, fmt.Errorf("listing checkpoints: %w", err)
			}
		}
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove forgets the snapshot of a name. It is no error if there is none.
func (d *Directory) Remove(name string) error {
	err := os.Remove(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = d.sync()
	}
	if err != nil {
		return fmt.Errorf("removing checkpoint %q: %w", name, err)
	}
	return nil
}

func (d *Directory) file(name string) string { return filepath.Join(d.path, fileName(name)) }
