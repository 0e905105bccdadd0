package ingesttest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
)

// SchemaRegistry is a schema registry over HTTP that responds like Confluent's.
type SchemaRegistry struct {
	*httptest.Server

	mu       sync.Mutex
	schemas  map[int]map[string]any            // by id
	versions map[string]map[int]map[string]any // by subject and version
	asked    []string                          // paths of the requests
	more     chan struct{}                     // closed at the next request
	failing  int                               // status of every response; 0 for normal responses
	password string                            // of the user rewardwatch; "" for none
	hold     chan struct{}                     // if not nil, requests wait until it is closed
}

// NewSchemaRegistry starts an empty registry. Close stops it.
func NewSchemaRegistry() *SchemaRegistry { return newSchemaRegistry((*httptest.Server).Start) }

// NewTLSSchemaRegistry starts an empty registry that uses TLS with its own certificate.
func NewTLSSchemaRegistry() *SchemaRegistry { return newSchemaRegistry((*httptest.Server).StartTLS) }

func newSchemaRegistry(start func(*httptest.Server)) *SchemaRegistry {
	r := &SchemaRegistry{schemas: map[int]map[string]any{}, versions: map[string]map[int]map[string]any{}, more: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /schemas/ids/{id}", func(w http.ResponseWriter, req *http.Request) {
		id, _ := strconv.Atoi(req.PathValue("id"))
		r.mu.Lock()
		defer r.mu.Unlock()
		answer(w, r.schemas[id], 40403, fmt.Sprintf("Schema %d not found", id))
	})
	mux.HandleFunc("GET /subjects/{subject}/versions/{version}", func(w http.ResponseWriter, req *http.Request) {
		version, _ := strconv.Atoi(req.PathValue("version"))
		r.mu.Lock()
		defer r.mu.Unlock()
		answer(w, r.versions[req.PathValue("subject")][version], 40402, fmt.Sprintf("Version %d not found.", version))
	})
	r.Server = httptest.NewUnstartedServer(r.guard(mux))
	start(r.Server)
	return r
}

// Put registers a schema as the next version of the subject with the same name, and returns its ID. kind is AVRO,
// PROTOBUF or JSON. Each reference is the name of a subject, of which version 1 is used.
func (r *SchemaRegistry) Put(name, kind, text string, references ...string) (id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id = len(r.schemas) + 1
	s := map[string]any{"schema": text}
	if kind != "AVRO" { // which registries omit
		s["schemaType"] = kind
	}
	var refs []map[string]any
	for _, to := range references {
		refs = append(refs, map[string]any{"name": to, "subject": to, "version": 1})
	}
	if len(refs) > 0 {
		s["references"] = refs
	}
	r.schemas[id] = s
	if r.versions[name] == nil {
		r.versions[name] = map[int]map[string]any{}
	}
	version := map[string]any{"subject": name, "id": id, "version": len(r.versions[name]) + 1}
	for k, v := range s {
		version[k] = v
	}
	r.versions[name][len(r.versions[name])+1] = version
	return id
}

// Fail makes every response have the given status. 0 reverts it.
func (r *SchemaRegistry) Fail(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = status
}

// Protect makes the registry require a password for the user rewardwatch.
func (r *SchemaRegistry) Protect(password string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.password = password
}

// Hold makes requests wait until release is called or the client cancels them.
func (r *SchemaRegistry) Hold() (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hold := make(chan struct{})
	r.hold = hold
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.hold = nil
		close(hold)
	})
}

// Asked returns the paths of all requests so far.
func (r *SchemaRegistry) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.asked...)
}

// Await waits for a number of requests.
func (r *SchemaRegistry) Await(ctx context.Context, requests int) error {
	for {
		r.mu.Lock()
		asked, more := len(r.asked), r.more
		r.mu.Unlock()
		if asked >= requests {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// guard records requests, and responds to those that do not reach the schemas.
func (r *SchemaRegistry) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.asked = append(r.asked, req.URL.Path)
		close(r.more)
		r.more = make(chan struct{})
		failing, password, hold := r.failing, r.password, r.hold
		r.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-req.Context().Done():
				return
			}
		}
		user, given, _ := req.BasicAuth()
		switch {
		case failing != 0:
			respond(w, failing, map[string]any{"error_code": failing*100 + 1, "message": "Error in the backend data store"})
		case password != "" && (user != "rewardwatch" || given != password):
			respond(w, http.StatusUnauthorized, map[string]any{"error_code": 401, "message": "Unauthorized"})
		default:
			next.ServeHTTP(w, req)
		}
	})
}

// answer responds with a schema, or with an error if s is nil.
func answer(w http.ResponseWriter, s map[string]any, code int, missing string) {
	if s == nil {
		respond(w, http.StatusNotFound, map[string]any{"error_code": code, "message": missing})
		return
	}
	respond(w, http.StatusOK, s)
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a test notices missing data
}
