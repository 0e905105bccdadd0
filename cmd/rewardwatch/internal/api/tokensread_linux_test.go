package api

import (
	"net/http"
	"os"
	"syscall"
	"testing"
)

// opened returns a function that returns how often a file was opened since the last call.
func opened(t *testing.T, file string) func() int {
	t.Helper()
	watch, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(watch) })
	if _, err := syscall.InotifyAddWatch(watch, file, syscall.IN_OPEN|syscall.IN_CLOSE_NOWRITE); err != nil {
		t.Fatal(err)
	}
	return func() int {
		var events [64 * syscall.SizeofInotifyEvent]byte // those of a file have no name
		n, err := syscall.Read(watch, events[:])
		if err == syscall.EAGAIN {
			return 0
		}
		if err != nil {
			t.Fatal(err)
		}
		return n / syscall.SizeofInotifyEvent / 2 // one as it is opened, and one as it is closed
	}
}

// However many checks a request passes, each token file is read once for it, and again for the next one.
func TestTokenFilesAreReadOnceForARequest(t *testing.T) {
	s, _, _ := tenantsServer(t)
	file := s.holders[len(s.holders)-1].File
	opens, h := opened(t, file), s.Handler()
	const agents = "games-agents"
	for _, c := range []struct{ name, method, path, body, token string }{
		{"telemetry of a tenant", http.MethodPost, "/api/v1/telemetry", `{"policy":"pong-1"}`, tenantToken(agents)},
		{"a page", http.MethodGet, "/incidents", "", tenantToken("shop-viewer")},
		{"a wrong token", http.MethodGet, "/api/v1/streams", "", "wrong"},
	} {
		visit(h, c.method, c.path, c.body, c.token, nil)
		if got := opens(); got != 1 {
			t.Errorf("%s: read %d times", c.name, got)
		}
	}
	last := tenantToken("games-jobs")
	if w := visit(h, http.MethodGet, "/api/v1/retrain-requests/rr_none", "", last, nil); w.Code == http.StatusUnauthorized {
		t.Fatalf("%d", w.Code)
	}
	if err := os.WriteFile(file, []byte(tenantToken("replaced")), 0o600); err != nil {
		t.Fatal(err)
	}
	if w := visit(h, http.MethodGet, "/api/v1/retrain-requests/rr_none", "", last, nil); w.Code != http.StatusUnauthorized {
		t.Errorf("the replaced token gives %d", w.Code)
	}
}
