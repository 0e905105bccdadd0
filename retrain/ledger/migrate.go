package ledger

import (
	"context"
	"embed"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

//go:embed migrations
var migrations embed.FS

// migrate upgrades the schema in one transaction.
func (l *Ledger) migrate(ctx context.Context) error {
	return l.Update(ctx, func(tx *Tx) error { return l.upgrade(ctx, tx) })
}

// upgrade applies the embedded migrations that the ledger lacks, in order.
func (l *Ledger) upgrade(ctx context.Context, tx *Tx) error {
	dir := path.Join("migrations", l.name)
	files, err := migrations.ReadDir(dir)
	if err != nil {
		return err
	}
	seen, err := schemaVersion(ctx, tx)
	if err != nil {
		return err
	}
	if seen > len(files) {
		return fmt.Errorf("its schema has version %d, but this build supports up to %d: it was written by a newer build", seen, len(files))
	}
	for _, f := range files[seen:] {
		if err := apply(ctx, tx, dir, f.Name()); err != nil {
			return fmt.Errorf("migration %s: %w", f.Name(), err)
		}
	}
	return l.migrateQueue(ctx, tx)
}

func schemaVersion(ctx context.Context, tx *Tx) (int, error) {
	const table = `CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`
	if _, err := tx.ExecContext(ctx, table); err != nil {
		return 0, err
	}
	var version int
	err := tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM migrations`).Scan(&version)
	return version, err
}

// apply runs one migration, whose name begins with its version.
func apply(ctx context.Context, tx *Tx, dir, name string) error {
	number, _, _ := strings.Cut(name, "_")
	version, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	text, err := migrations.ReadFile(path.Join(dir, name))
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO migrations (version, name, applied_at) VALUES ($1, $2, $3)`,
		version, name, time.Now().UnixMilli())
	return err
}
