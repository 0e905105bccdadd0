// Package registry fetches the schemas of records from a schema registry, by the ids in Confluent's wire format.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"golang.org/x/time/rate"
)

// Schema is a schema as the registry has it.
type Schema struct {
	Text string
	Type string // AVRO, PROTOBUF or JSON
	// References are the schemas that it refers to, and those that these refer to: each comes after those that it needs.
	References []Reference
}

// size returns how long a schema is with those that it refers to, in bytes.
func (s Schema) size() int {
	n := len(s.Text)
	for _, r := range s.References {
		n += len(r.Text)
	}
	return n
}

// Reference is a schema that another one refers to.
type Reference struct{ Name, Text string }

// Registry has the schemas of a registry, parsed, that have been fetched. Its methods may be called from several
// goroutines. A schema never changes, so none is fetched twice.
type Registry[T any] struct {
	client *sr.Client
	parse  func(Schema) (T, error)
	now    func() time.Time

	mu      sync.Mutex
	schemas map[int]T
	texts   int // bytes of the texts of schemas
	unknown map[int]unknown
	misses  *rate.Limiter // of unknown ids
}

// unknown is an id that the registry does not know, or whose schema cannot be parsed.
type unknown struct {
	err   error
	until time.Time // when to ask again
}

const (
	// askAgain is how long an unknown id stays unknown: its schema may be registered late.
	askAgain = time.Minute
	// maxUnknown is how many unknown ids are remembered. A record may hold any id.
	maxUnknown = 1000
	// Of the ids that turn out to be unknown, maxMisses are asked for at once, and then missesPerSecond. Otherwise a writer
	// with made-up ids could hold up a partition for as long as the registry takes to answer each.
	maxMisses       = 100
	missesPerSecond = 10
	// maxReferences is how many schemas one may refer to.
	maxReferences = 100
	// maxText is the longest schema with those that it refers to, in bytes, as parsing one takes many times its length.
	// A registry that keeps its schemas in Kafka has none that is longer.
	maxText = 1 << 20
	// maxTexts is how long all schemas together may be: who writes a topic can often register any number of them.
	maxTexts = 16 << 20
	// patience is the longest answer to one request.
	patience = 10 * time.Second
)

// Open returns the schemas of a registry that Check has accepted. It fetches nothing yet.
func Open[T any](c Config, parse func(Schema) (T, error)) (*Registry[T], error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	return &Registry[T]{client: client, parse: parse, now: time.Now, schemas: map[int]T{}, unknown: map[int]unknown{}, misses: rate.NewLimiter(missesPerSecond, maxMisses)}, nil
}

// Fetch fetches the schema of an id unless it is known, or too many others were unknown just now. After nil, Get has an
// answer. An error means that the registry did not answer, or did not let this service in: ask again later.
func (r *Registry[T]) Fetch(ctx context.Context, id int) error {
	if r.has(id) || r.misses.TokensAt(r.now()) < 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := r.schema(ctx, id)
	var parsed T
	switch {
	case isUnknown(err):
		err = fmt.Errorf("the schema registry has no schema %d: %w", id, err)
	case err != nil:
		return fmt.Errorf("fetch schema %d from the schema registry: %w", id, err)
	case !r.fits(s):
		err = fmt.Errorf("schema %d from the schema registry cannot be used: with the other schemas in use, it exceeds %d bytes", id, maxTexts)
	default:
		if parsed, err = r.parse(s); err != nil {
			err = fmt.Errorf("schema %d from the schema registry cannot be used: %w", id, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		if _, known := r.schemas[id]; !known { // another partition may have fetched it
			r.schemas[id], r.texts = parsed, r.texts+s.size()
		}
		return nil
	}
	r.misses.AllowN(r.now(), 1)
	if len(r.unknown) >= maxUnknown {
		clear(r.unknown)
	}
	r.unknown[id] = unknown{err, r.now().Add(askAgain)}
	return nil
}

// fits reports whether there is room for one more schema.
func (r *Registry[T]) fits(s Schema) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.texts+s.size() <= maxTexts
}

// has reports whether Get has an answer that is not too old.
func (r *Registry[T]) has(id int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.schemas[id]; ok {
		return true
	}
	u, ok := r.unknown[id]
	return ok && r.now().Before(u.until)
}

// Get returns the schema of an id that was fetched. Its error says why there is none.
func (r *Registry[T]) Get(id int) (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.schemas[id]
	switch {
	case ok:
		return s, nil
	case r.unknown[id].err != nil:
		return s, r.unknown[id].err
	}
	return s, fmt.Errorf("schema %d was not looked up: too many other schemas were missing from the schema registry", id)
}

// isUnknown reports whether the registry has answered that there is no such schema. It then gives a separate code; a
// bare 404 comes from something that is no registry.
func isUnknown(err error) bool {
	var answer *sr.ResponseError
	if errors.As(err, &answer) {
		kind := answer.ErrorCode / 100
		return kind == http.StatusNotFound || kind == http.StatusUnprocessableEntity
	}
	return errors.Is(err, errManyReferences) || errors.Is(err, errLong)
}

// Why a schema that the registry has is not used.
var (
	errManyReferences = fmt.Errorf("it references more than %d other schemas", maxReferences)
	errLong           = fmt.Errorf("with the schemas that it references, it exceeds %d bytes", maxText)
)

// schema fetches a schema with those that it refers to.
func (r *Registry[T]) schema(ctx context.Context, id int) (Schema, error) {
	got, err := r.client.SchemaByID(ctx, id)
	if err != nil {
		return Schema{}, err
	}
	s := Schema{Text: got.Schema, Type: got.Type.String()}
	seen := map[string]bool{}
	err = r.references(ctx, got.References, seen, &s.References)
	if err == nil && s.size() > maxText {
		err = errLong
	}
	return s, err
}

// references appends schemas that are not seen yet, each after those that it refers to.
func (r *Registry[T]) references(ctx context.Context, of []sr.SchemaReference, seen map[string]bool, to *[]Reference) error {
	for _, ref := range of {
		if seen[ref.Name] {
			continue
		}
		if len(seen) == maxReferences {
			return errManyReferences
		}
		seen[ref.Name] = true
		got, err := r.client.SchemaByVersion(ctx, ref.Subject, ref.Version)
		if err != nil {
			return fmt.Errorf("it references version %d of %s: %w", ref.Version, ref.Subject, err)
		}
		if len(got.Schema.Schema) > maxText {
			return errLong
		}
		if err := r.references(ctx, got.References, seen, to); err != nil {
			return err
		}
		*to = append(*to, Reference{Name: ref.Name, Text: got.Schema.Schema})
	}
	return nil
}
