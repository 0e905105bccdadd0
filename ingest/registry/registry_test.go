package registry

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// text returns a schema's text as its parsed form, and refuses "bad".
func text(s Schema) (string, error) {
	if s.Text == "bad" {
		return "", errors.New("it is bad")
	}
	out := s.Type + " " + s.Text
	for _, r := range s.References {
		out += fmt.Sprintf(" %s=%s", r.Name, r.Text)
	}
	return out, nil
}

func start(t *testing.T) *ingesttest.SchemaRegistry {
	t.Helper()
	r := ingesttest.NewSchemaRegistry()
	t.Cleanup(r.Close)
	return r
}

func open(t *testing.T, c Config) *Registry[string] {
	t.Helper()
	r, err := Open(c, text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSchemasAreFetchedOnce(t *testing.T) {
	server := start(t)
	server.Put("arm", "AVRO", "a")
	server.Put("arms", "AVRO", "b", "arm")
	id := server.Put("step", "AVRO", "c", "arms", "arm")
	other := server.Put("click", "PROTOBUF", "d")
	r := open(t, Config{URL: server.URL + "/"})
	for range 2 {
		for id, want := range map[int]string{id: "AVRO c arm=a arms=b", other: "PROTOBUF d"} {
			if err := r.Fetch(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if got, err := r.Get(id); err != nil || got != want {
				t.Errorf("%d: %q %v, want %q", id, got, err, want)
			}
		}
	}
	asked := server.Asked()
	slices.Sort(asked)
	want := []string{"/schemas/ids/3", "/schemas/ids/4", "/subjects/arm/versions/1", "/subjects/arms/versions/1"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}

func TestUnknownSchemas(t *testing.T) {
	server := start(t)
	bad := server.Put("bad", "AVRO", "bad")
	dangling := server.Put("step", "AVRO", "c", "missing")
	r := open(t, Config{URL: server.URL})
	now := time.Unix(0, 0)
	r.now = func() time.Time { return now }
	for id, want := range map[int]string{
		99:       "the schema registry has no schema 99: ",
		bad:      "schema 1 from the schema registry cannot be used: it is bad",
		dangling: "the schema registry has no schema 2: it references version 1 of missing: ",
		7:        "schema 7 was not looked up: ",
	} {
		if id != 7 { // which was not fetched
			if err := r.Fetch(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Get(id); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%d: %v, want %s", id, err, want)
		}
	}
	asked := len(server.Asked())
	fetch := func(id int) int {
		if err := r.Fetch(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return len(server.Asked()) - asked
	}
	if n := fetch(99); n != 0 {
		t.Errorf("asked %d times for an id that was unknown a moment ago", n)
	}
	now = now.Add(askAgain)
	if n := fetch(99); n != 1 {
		t.Errorf("asked %d times for an id that was unknown a minute ago", n)
	}
}

func TestUnknownIDsAreBounded(t *testing.T) {
	server := start(t)
	r := open(t, Config{URL: server.URL})
	for id := range maxUnknown {
		r.unknown[-id-1] = unknown{}
	}
	if err := r.Fetch(t.Context(), 1); err != nil || len(r.unknown) != 1 {
		t.Errorf("%d are remembered: %v", len(r.unknown), err)
	}
}

// Made-up IDs do not delay a partition or affect known schemas. An ID that is registered in the meantime is found.
func TestFloodOfUnknownIDs(t *testing.T) {
	server := start(t)
	known := server.Put("known", "AVRO", "k")
	r := open(t, Config{URL: server.URL})
	now := time.Unix(0, 0)
	r.now = func() time.Time { return now }
	fetch := func(ids ...int) (asked int) {
		t.Helper()
		before := len(server.Asked())
		for _, id := range ids {
			if err := r.Fetch(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		return len(server.Asked()) - before
	}
	flood := func(from int) (ids []int) {
		for i := range 1000 {
			ids = append(ids, from+i)
		}
		return ids
	}
	fetch(known)
	if n := fetch(flood(1000)...); n != maxMisses {
		t.Errorf("asked %d times for made-up ids, want %d", n, maxMisses)
	}
	if _, err := r.Get(1999); err == nil || !strings.Contains(err.Error(), "was not looked up") {
		t.Errorf("the last made-up id: %v", err)
	}
	if got, err := r.Get(known); err != nil || got != "AVRO k" {
		t.Errorf("a known schema: %q, %v", got, err)
	}
	added := server.Put("added", "AVRO", "a")
	if n := fetch(added); n != 0 {
		t.Errorf("asked %d times during the flood", n)
	}
	now = now.Add(time.Second)
	fetch(added)
	if got, err := r.Get(added); err != nil || got != "AVRO a" {
		t.Errorf("a schema that was added: %q, %v", got, err)
	}
	if n := fetch(flood(5000)...); n != missesPerSecond {
		t.Errorf("asked %d times in the next second, want %d", n, missesPerSecond)
	}
}

// A writer of the topic may be able to register schemas, so neither a single schema nor all of them together may use
// unlimited memory.
func TestSchemasAreBounded(t *testing.T) {
	server := start(t)
	r := open(t, Config{URL: server.URL})
	get := func(id int) error {
		t.Helper()
		if err := r.Fetch(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		_, err := r.Get(id)
		return err
	}
	half := strings.Repeat("x", maxText/2)
	server.Put("half", "AVRO", half)
	server.Put("long", "AVRO", half+half+"x")
	for name, id := range map[string]int{
		"long":           server.Put("longer", "AVRO", half+half+"y"),
		"long together":  server.Put("together", "AVRO", half+"x", "half"),
		"long reference": server.Put("short", "AVRO", "x", "long"),
	} {
		if err := get(id); !errors.Is(err, errLong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	first := server.Put("first", "AVRO", "fits", "half")
	if err := get(first); err != nil || r.texts != len(half)+len("fits") {
		t.Errorf("%d bytes: %v", r.texts, err)
	}
	r.texts = maxTexts - 4
	if err := get(server.Put("five", "AVRO", "12345")); err == nil || !strings.Contains(err.Error(), "with the other schemas in use") {
		t.Errorf("a schema without room: %v", err)
	}
	if err := get(server.Put("four", "AVRO", "1234")); err != nil {
		t.Error(err)
	}
	if err := get(first); err != nil {
		t.Errorf("a schema in use: %v", err)
	}
}

// A redirect of the registry sends neither the password nor the service to another address.
func TestRegistryThatRedirects(t *testing.T) {
	other := start(t)
	id := other.Put("step", "AVRO", "c")
	server := httptest.NewServer(http.RedirectHandler(fmt.Sprintf("%s/schemas/ids/%d", other.URL, id), http.StatusFound))
	defer server.Close()
	if err := open(t, Config{URL: server.URL}).Fetch(t.Context(), id); err == nil || len(other.Asked()) > 0 {
		t.Errorf("the other server was asked for %q: %v", other.Asked(), err)
	}
}

func TestOutages(t *testing.T) {
	server := start(t)
	id := server.Put("step", "AVRO", "c", "part")
	server.Put("part", "AVRO", "p")
	r := open(t, Config{URL: server.URL})
	refused := func(what, want string, ctx context.Context) {
		t.Helper()
		if err := r.Fetch(ctx, id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	server.Fail(http.StatusInternalServerError)
	refused("500", "Error in the backend data store", t.Context())
	server.Fail(http.StatusTooManyRequests)
	refused("429", "fetch schema 1 from the schema registry", t.Context())
	server.Fail(0)
	server.Protect("secret")
	refused("401", "Unauthorized", t.Context())
	server.Protect("")

	release := server.Hold()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	refused("slow", "context deadline exceeded", ctx)
	release()

	if err := r.Fetch(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Get(id); err != nil || got != "AVRO c part=p" {
		t.Errorf("%q %v", got, err)
	}
}

// A 404 response that does not come from a registry does not mean that the schema does not exist.
func TestABareNotFoundIsAnOutage(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if err := open(t, Config{URL: server.URL}).Fetch(t.Context(), 1); err == nil {
		t.Error("the schema is unknown")
	}
}

func TestSignIn(t *testing.T) {
	server := start(t)
	id := server.Put("step", "AVRO", "c")
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	server.Protect("new")
	r := open(t, Config{URL: server.URL, Username: "rewardwatch", PasswordFile: file})
	if err := r.Fetch(t.Context(), id); err == nil || strings.Contains(err.Error(), "old") {
		t.Errorf("a wrong password: %v", err)
	}
	write("new")
	if err := r.Fetch(t.Context(), id); err != nil {
		t.Error(err)
	}
}

func TestCertificateAuthority(t *testing.T) {
	server := ingesttest.NewTLSSchemaRegistry()
	defer server.Close()
	server.Config.ErrorLog = nil
	id := server.Put("step", "AVRO", "c")
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	if err := open(t, Config{URL: server.URL, CAFile: ca}).Fetch(t.Context(), id); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ config, want string }{
		{filepath.Join(dir, "missing.pem"), "no such file"},
		{write("empty.pem", ""), "contains no certificate"},
	} {
		if _, err := Open(Config{URL: server.URL, CAFile: c.config}, text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := Open(Config{URL: server.URL, Username: "u", PasswordFile: filepath.Join(dir, "none")}, text); err == nil {
		t.Error("opened without the password")
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{}, ""},
		{Config{URL: "https://registry.example:8081/base"}, ""},
		{Config{URL: "registry.example:8081"}, "url: must be a URL such as https://registry.example:8081"},
		{Config{URL: "https://u:p@registry.example"}, "url: must not contain a password: use username and password_file"},
		{Config{CAFile: "ca.pem"}, "url: must be set, or the other keys of registry have no effect"},
		{Config{URL: "http://r", Username: "u"}, "username: must be set together with password_file"},
	} {
		var got []string
		c.config.Check(func(path, msg string) { got = append(got, path+": "+msg) })
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%+v: %q, want %q", c.config, got, c.want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x07rest"))
	f.Add([]byte(`{"policy":"p"}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		id, rest, err := Split(value)
		framed := len(value) >= 5 && value[0] == 0
		if framed != (err == nil) || framed && (len(rest) != len(value)-5 || id < 0) {
			t.Errorf("%x: %d %x %v", value, id, rest, err)
		}
	})
}
