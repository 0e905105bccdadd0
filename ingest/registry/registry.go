// Package registry fetches the schemas of records from a schema registry by the IDs in Confluent's wire format.
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

// Schema is a schema from the registry.
type Schema struct {
	Text string
	Type string // AVRO, PROTOBUF or JSON
	// References contains the schemas that it refers to, directly or indirectly. Each comes after the schemas that it
	// refers to itself.
	References []Reference
}

// size returns the total size in bytes of a schema and its references.
func (s Schema) size() int {
	n := len(s.Text)
	for _, r := range s.References {
		n += len(r.Text)
	}
	return n
}

// Reference is a schema to which another one refers.
type Reference struct{ Name, Text string }

// Registry caches the parsed schemas of a schema registry. Its methods are safe for concurrent use. Schemas never
// change, so each is fetched only once.
type Registry[T any] struct {
	client *sr.Client
	parse  func(Schema) (T, error)
	now    func() time.Time

	mu      sync.Mutex
	schemas map[int]T
	texts   int // total size of schemas as text, in bytes
	unknown map[int]unknown
	misses  *rate.Limiter // limits requests for unknown IDs
}

// unknown is an ID that the registry does not know, or whose schema cannot be used.
type unknown struct {
	err   error
	until time.Time // time of the next attempt
}

const (
	// askAgain is the time after which an unknown ID is requested again, because its schema may be registered late.
	askAgain = time.Minute
	// maxUnknown is the maximum number of unknown IDs that are remembered. Records may contain arbitrary IDs.
	maxUnknown = 1000
	// Requests for IDs that turn out to be unknown are limited to missesPerSecond, with bursts of maxMisses. Otherwise, a
	// writer with made-up IDs could delay a partition by one response of the registry per ID.
	maxMisses       = 100
	missesPerSecond = 10
	// maxReferences is the maximum number of schemas to which a schema may refer.
	maxReferences = 100
	// maxText is the maximum size of a schema and its references in bytes. Parsing a schema takes many times its size.
	// Registries that store their schemas in Kafka have no larger schemas.
	maxText = 1 << 20
	// maxTexts is the maximum total size of all schemas in bytes. Clients that write to a topic can often register any
	// number of schemas.
	maxTexts = 16 << 20
	// patience is the timeout of a request.
	patience = 10 * time.Second
)

// Open returns the schemas of a registry whose configuration Check has accepted. It does not connect.
func Open[T any](c Config, parse func(Schema) (T, error)) (*Registry[T], error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	return &Registry[T]{client: client, parse: parse, now: time.Now, schemas: map[int]T{}, unknown: map[int]unknown{}, misses: rate.NewLimiter(missesPerSecond, maxMisses)}, nil
}

// Fetch fetches the schema with the given ID, unless it is known, or too many others were unknown recently. After it
// has returned nil, Get returns the result. An error means that the registry did not respond or denied access. Call
// Fetch again later.
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
		if _, known := r.schemas[id]; !known { // another partition may have fetched it in the meantime
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

// fits reports whether there is room for another schema.
func (r *Registry[T]) fits(s Schema) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.texts+s.size() <= maxTexts
}

// has reports whether Get has a result that is not outdated.
func (r *Registry[T]) has(id int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.schemas[id]; ok {
		return true
	}
	u, ok := r.unknown[id]
	return ok && r.now().Before(u.until)
}

// Get returns the schema with the given ID, which must have been fetched. The error says why there is none.
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

// isUnknown reports whether the registry responded that the schema does not exist, or whether the schema exceeds the
// limits. A registry uses special error codes for this; a plain 404 status comes from a server that is not a registry.
func isUnknown(err error) bool {
	var answer *sr.ResponseError
	if errors.As(err, &answer) {
		kind := answer.ErrorCode / 100
		return kind == http.StatusNotFound || kind == http.StatusUnprocessableEntity
	}
	return errors.Is(err, errManyReferences) || errors.Is(err, errLong)
}

// Reasons for not using a schema of the registry.
var (
	errManyReferences = fmt.Errorf("it references more than %d other schemas", maxReferences)
	errLong           = fmt.Errorf("with the schemas that it references, it exceeds %d bytes", maxText)
)

// schema fetches a schema with its references.
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

// references appends the schemas that have not been seen yet, each after the schemas that it refers to.
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
