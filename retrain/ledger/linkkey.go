package ledger

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"
)

// linkKeySize is the size of the digest: a longer key does not strengthen a signature.
const linkKeySize = sha256.Size

// LinkKey returns the key that signs links, nil before the first one.
func (l *Ledger) LinkKey(ctx context.Context) ([]byte, error) { return linkKey(ctx, l.reads) }

// linkKey returns the key that signs links, nil before the first one.
func linkKey(ctx context.Context, q queryer) (key []byte, err error) {
	if err := found(q.QueryRowContext(ctx, `SELECT key FROM link_key`).Scan(&key)); err != nil {
		return nil, fmt.Errorf("read the key for signed links: %w", err)
	}
	return key, nil
}

// MakeLinkKey returns the key, and creates it if there is none: all instances and all later starts share it.
func (l *Ledger) MakeLinkKey(ctx context.Context) (key []byte, err error) {
	if key, err = linkKey(ctx, l.db); err != nil || key != nil {
		return key, err
	}
	fresh := make([]byte, linkKeySize)
	_, _ = rand.Read(fresh) // never fails
	err = l.Update(ctx, func(tx *Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO link_key (id, key, made_at) VALUES (1, $1, $2) ON CONFLICT DO NOTHING`, fresh, time.Now().UnixMilli())
		if err != nil {
			return fmt.Errorf("store the key for signed links: %w", err)
		}
		key, err = linkKey(ctx, tx)
		return err
	})
	return key, err
}
