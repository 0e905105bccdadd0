package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/rewardwatch/rewardwatch/ingest/datadir"
)

var _ Backend = (*Directory)(nil)

// temporary is the pattern of files being written. They are never read: a crash before the rename leaves the earlier
// segments in place.
const temporary = "*" + suffix + ".tmp"

// Directory is a backend that stores each segment in a file. It belongs to one process at a time, so it can track its
// files in memory. It lists the directory only when it is opened and when Names is called, because a start requests the
// generations of every name.
type Directory struct {
	path   string
	lock   *os.File
	create func(directory, pattern string) (*os.File, error)

	spare sync.Pool // of *[]byte, reused memory for segments

	mu    sync.Mutex
	stems map[string][]uint64 // generations by stem
}

// NewDirectory opens the backend. It creates the directory if it is missing, and removes the remains of interrupted
// writes. The error is datadir.ErrLocked while another process has it open. Close releases it.
func NewDirectory(path string) (*Directory, error) {
	if err := os.MkdirAll(path, 0o750); err != nil {
		return nil, fmt.Errorf("create the checkpoint directory: %w", err)
	}
	held, err := datadir.Lock(path)
	if err != nil {
		return nil, fmt.Errorf("open the checkpoints: %w", err)
	}
	d := &Directory{path: path, lock: held, create: os.CreateTemp}
	if err := errors.Join(removeTemporary(path), d.list()); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return d, nil
}

func removeTemporary(path string) error {
	left, err := filepath.Glob(filepath.Join(escapeGlob(path), temporary))
	if err != nil {
		return fmt.Errorf("look for unfinished checkpoints: %w", err)
	}
	for _, file := range left {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("remove an unfinished checkpoint: %w", err)
		}
	}
	return nil
}

// escapeGlob escapes the characters of a path that a pattern would interpret.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Close lets another process open the directory. Do not call Put afterwards.
func (d *Directory) Close() error {
	if err := d.lock.Close(); err != nil {
		return fmt.Errorf("unlock the checkpoint directory: %w", err)
	}
	return nil
}

// Beside returns the directory for the units that the checkpoint with this name refers to. The backend itself does not
// use it.
func (d *Directory) Beside(name string) string { return filepath.Join(d.path, stem(name)+unitsSuffix) }

// Where implements Backend.
func (d *Directory) Where(name string, generation uint64) string {
	return filepath.Join(d.path, fileName(name, generation))
}

// Get implements Backend. A disk read error counts as damage.
func (d *Directory) Get(name string, generation uint64) ([]byte, error) {
	segment, err := d.read(d.Where(name, generation))
	if errors.Is(err, syscall.EIO) {
		return nil, &DamagedError{Where: d.Where(name, generation), Why: err.Error()}
	}
	return segment, err
}

// read reads a file, into recycled memory if it is large enough.
func (d *Directory) read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	segment, err := d.readAll(f)
	return segment, errors.Join(err, f.Close())
}

func (d *Directory) readAll(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := int(info.Size())
	spare, _ := d.spare.Get().(*[]byte)
	if spare == nil || cap(*spare) < size {
		room := make([]byte, size+size/4) // room for slightly larger segments, too
		spare = &room
	}
	segment := (*spare)[:size]
	_, err = io.ReadFull(f, segment)
	return segment, err
}

// Recycle implements recycler.
func (d *Directory) Recycle(segment []byte) { d.spare.Put(&segment) }

// Put implements Backend.
func (d *Directory) Put(name string, generation uint64, segment []byte) error {
	return d.PutPieces(name, generation, [][]byte{segment})
}

// PutPieces implements pieceWriter.
func (d *Directory) PutPieces(name string, generation uint64, pieces [][]byte) error {
	f, err := d.create(d.path, temporary)
	if err != nil {
		return err
	}
	if err := write(f, pieces); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), d.Where(name, generation)); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d.noteSegment(name, generation, true)
	return datadir.Sync(d.path)
}

// noteSegment records whether a segment exists.
func (d *Directory) noteSegment(name string, generation uint64, there bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	stem := stem(name)
	have := slices.DeleteFunc(d.stems[stem], func(g uint64) bool { return g == generation })
	if there {
		have = append(have, generation)
	}
	if d.stems[stem] = have; len(have) == 0 {
		delete(d.stems, stem)
	}
}

// write fills the file and closes it once its bytes are on the disk: a rename before that could replace a good
// checkpoint with a file that is empty after a power cut.
func write(f *os.File, pieces [][]byte) error {
	for _, piece := range pieces {
		if _, err := f.Write(piece); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// Remove implements Backend. If a crash brings the segment back, the store removes it again.
func (d *Directory) Remove(name string, generation uint64) error {
	if err := os.Remove(d.Where(name, generation)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.noteSegment(name, generation, false)
	return nil
}

// list reads the names of the segments in the directory.
func (d *Directory) list() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("list checkpoints: %w", err)
	}
	d.stems = map[string][]uint64{}
	for _, entry := range entries {
		if stem, generation, ok := split(entry.Name()); ok {
			d.stems[stem] = append(d.stems[stem], generation)
		}
	}
	return nil
}

// Generations implements Backend.
func (d *Directory) Generations(name string) ([]uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.stems[stem(name)]), nil
}

// Names implements Backend.
func (d *Directory) Names(prefix string) ([]string, error) {
	if err := d.list(); err != nil {
		return nil, err
	}
	var names []string
	for _, escaped := range d.sortedStems() {
		name, whole, ok := nameOf(escaped)
		if !ok {
			continue
		}
		if !whole {
			var err error
			if name, err = d.nameInside(escaped); err != nil {
				return nil, err
			}
		}
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (d *Directory) sortedStems() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.stems))
}

// nameInside reads a name that is too long for a file name from an intact segment with this stem.
func (d *Directory) nameInside(escaped string) (string, error) {
	d.mu.Lock()
	generations := slices.Clone(d.stems[escaped])
	d.mu.Unlock()
	var why []error
	for _, generation := range generations {
		path := filepath.Join(d.path, fileOf(escaped, generation))
		segment, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, syscall.EIO) {
			return "", fmt.Errorf("list checkpoints: %w", err)
		}
		name, _, _, err := decode(segment)
		switch {
		case err == nil && stem(name) == escaped:
			return name, nil
		case errors.Is(err, errOtherVersion):
			why = append(why, &VersionError{Where: path, Why: err.Error()})
		default:
			why = append(why, &DamagedError{Where: path, Why: fmt.Sprintf("its name cannot be read: %v", err)})
		}
	}
	return "", errors.Join(why...)
}
