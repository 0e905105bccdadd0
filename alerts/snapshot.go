package alerts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// snapshotVersion leads every part. It changes with the meaning of what follows.
const snapshotVersion = 4

// partPrefix begins the names of a book's parts of a checkpoint, one for each group.
const partPrefix = "book/"

// Changed reports whether anything has changed since the book was made, resumed or last Saved.
func (b *Book) Changed() bool {
	return slices.ContainsFunc(b.order, func(g *groupBook) bool { return g.changed })
}

// Changes gives the parts of the book's checkpoint that have changed since then.
func (b *Book) Changes() (ingest.Parts, error) {
	parts := ingest.Parts{}
	for i, g := range b.order {
		if !g.changed {
			continue
		}
		part, err := ingest.EncodeState(snapshotVersion, g)
		if err != nil {
			return nil, fmt.Errorf("encoding alarms: %w", err)
		}
		parts[partPrefix+strconv.Itoa(i)] = part
	}
	return parts, nil
}

// Saved says that what Changes gave last is durable.
func (b *Book) Saved() {
	for _, g := range b.order {
		g.changed = false
	}
}

// Lost says that what was saved is not to be relied on: Changes gives all parts until the next Saved.
func (b *Book) Lost() {
	for _, g := range b.order {
		g.changed = true
	}
}

// Resume reads the parts of a checkpoint into a new book. Parts that are not of a book are passed over. After an error the
// book is of no use.
func (b *Book) Resume(parts ingest.Parts) error {
	count := 0
	for part := range parts {
		if strings.HasPrefix(part, partPrefix) {
			count++
		}
	}
	for i := range count {
		part := partPrefix + strconv.Itoa(i)
		g, err := resumeGroup(parts[part])
		if err != nil {
			return fmt.Errorf("reading alarms: part %s: %w", part, err)
		}
		b.add(g)
	}
	return nil
}

func resumeGroup(part []byte) (g *groupBook, err error) {
	defer func() { // state that this program has not written can lead anywhere
		if r := recover(); r != nil {
			err = fmt.Errorf("it is no state of a book: %v", r)
		}
	}()
	g = &groupBook{}
	return g, ingest.DecodeState(part, snapshotVersion, g)
}
