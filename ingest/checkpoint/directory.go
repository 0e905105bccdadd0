package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

var _ Backend = (*Directory)(nil)

// ErrLocked says that another process uses the directory.
var ErrLocked = errors.New("the checkpoint directory is in use")

// temporary is the pattern of files that are being written. They never count: a crash before the rename leaves the
// segments before it in place.
const temporary = "*" + suffix + ".tmp"

// Directory is a backend of one file a segment. It belongs to one process at a time.
type Directory struct {
	path   string
	lock   *os.File
	create func(directory, pattern string) (*os.File, error)
}

// NewDirectory opens the backend, makes the directory where it is missing, and removes what writes that were cut short
// have left. The error is ErrLocked while another process has it open. Close lets go of it.
func NewDirectory(path string) (*Directory, error) {
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
	return &Directory{path: path, lock: held, create: os.CreateTemp}, nil
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

// Close lets another process open the directory. Nothing may be put afterwards.
func (d *Directory) Close() error {
	if err := d.lock.Close(); err != nil {
		return fmt.Errorf("unlocking the checkpoint directory: %w", err)
	}
	return nil
}

// Where implements Backend.
func (d *Directory) Where(name string, generation uint64) string {
	return filepath.Join(d.path, fileName(name, generation))
}

// Get implements Backend. A file that the disk cannot read is damaged.
func (d *Directory) Get(name string, generation uint64) ([]byte, error) {
	segment, err := os.ReadFile(d.Where(name, generation))
	if errors.Is(err, syscall.EIO) {
		return nil, &DamagedError{Where: d.Where(name, generation), Why: err.Error()}
	}
	return segment, err
}

// Put implements Backend.
func (d *Directory) Put(name string, generation uint64, segment []byte) error {
	f, err := d.create(d.path, temporary)
	if err != nil {
		return err
	}
	if err := write(f, segment); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), d.Where(name, generation)); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return d.sync()
}

// write fills the file, and closes it once its bytes are on the disk: renamed before that, it could take the place of
// a good checkpoint and be empty after a power cut.
func write(f *os.File, segment []byte) error {
	if _, err := f.Write(segment); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// sync makes renames last.
func (d *Directory) sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Remove implements Backend. A crash may bring the segment back, which does no harm: the store removes it again.
func (d *Directory) Remove(name string, generation uint64) error {
	if err := os.Remove(d.Where(name, generation)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Generations implements Backend.
func (d *Directory) Generations(name string) ([]uint64, error) {
	stems, err := d.stems()
	return stems[stem(name)], err
}

// stems lists the generations by the stems of their files.
func (d *Directory) stems() (map[string][]uint64, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("listing checkpoints: %w", err)
	}
	stems := map[string][]uint64{}
	for _, entry := range entries {
		if stem, generation, ok := split(entry.Name()); ok {
			stems[stem] = append(stems[stem], generation)
		}
	}
	return stems, nil
}

// Names implements Backend.
func (d *Directory) Names(prefix string) ([]string, error) {
	stems, err := d.stems()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, escaped := range slices.Sorted(maps.Keys(stems)) {
		name, whole, ok := nameOf(escaped)
		if !ok {
			continue
		}
		if !whole {
			if name, err = d.nameInside(escaped, stems[escaped]); err != nil {
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

// nameInside reads a name that is too long for a file name out of any of its segments that is whole.
func (d *Directory) nameInside(escaped string, generations []uint64) (string, error) {
	var why []error
	for _, generation := range generations {
		path := filepath.Join(d.path, fileOf(escaped, generation))
		segment, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, syscall.EIO) {
			return "", fmt.Errorf("listing checkpoints: %w", err)
		}
		name, _, _, err := decode(segment)
		switch {
		case err == nil && stem(name) == escaped:
			return name, nil
		case errors.Is(err, errOtherVersion):
			why = append(why, &VersionError{Where: path, Why: err.Error()})
		default:
			why = append(why, &DamagedError{Where: path, Why: fmt.Sprintf("it does not tell its name: %v", err)})
		}
	}
	return "", errors.Join(why...)
}
