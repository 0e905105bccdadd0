package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"

	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"
)

// largeMetrics gathers one metric whose help is too large for the buffers of a connection.
func largeMetrics() prometheus.Gatherer {
	help := strings.Repeat("much ", 4<<20)
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return []*dto.MetricFamily{{Name: new("large"), Help: &help, Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: new(1.)}}}}}, nil
	})
}

// sendGet asks for a path on a connection of its own, and waits for the first byte of the answer.
func sendGet(t *testing.T, address, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	askOn(t, c, path)
	return c
}

// askOn is sendGet on a connection that there is.
func askOn(t *testing.T, c net.Conn, path string) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

// Clients that do not read what they asked for held all places of /metrics for a minute.
func TestSlowScrapersKeepNobodyElseFromScraping(t *testing.T) {
	s, err := New(Config{Listen: "127.0.0.1:0"}, &apitest.FixedView{}, &apitest.FixedOrders{}, largeMetrics(), nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	var slow []net.Conn
	for range 2 * rendersAtOnce {
		slow = append(slow, sendGet(t, s.Addr(), "/metrics"))
	}
	client := &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	begun := time.Now()
	w, err := client.Get("http://" + s.Addr() + "/metrics")
	if err != nil || w.StatusCode != http.StatusOK {
		t.Fatalf("beside slow clients a scrape is answered with %v, %v", w, err)
	}
	body, err := io.ReadAll(w.Body)
	if err != nil || !bytes.HasSuffix(body, []byte("\nlarge 1\n")) {
		t.Errorf("%d bytes after %v, %v", len(body), time.Since(begun), err)
	}
	_ = w.Body.Close()
	for _, c := range slow {
		_ = c.Close()
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// pageOf serves an answer of so many bytes.
func pageOf(size int) http.Handler {
	page := bytes.Repeat([]byte("x"), size)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
}

// What waits to be read is bounded: the oldest goes.
func TestUnreadScrapesAreBounded(t *testing.T) {
	s := newScrapes(pageOf(unreadAnswers / 3))
	server := httptest.NewServer(s)
	defer server.Close()
	address := server.Listener.Addr().String()
	var slow []net.Conn
	for range 5 {
		slow = append(slow, sendGet(t, address, "/"))
	}
	unread := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.bytes
	}
	testkit.Eventually(t, "the oldest go", func() bool { return unread() <= unreadAnswers })
	for i, c := range slow {
		n, err := io.Copy(io.Discard, c)
		if whole := n > unreadAnswers/3; whole != (i >= 2) { // with the headers it is more
			t.Errorf("client %d has read %d bytes, %v", i, n, err)
		}
	}
	if cut := testutil.ToFloat64(s.Dropped.WithLabelValues("unread")); cut != 2 {
		t.Errorf("%v answers were cut off", cut)
	}
	testkit.Eventually(t, "nothing waits", func() bool { return unread() == 0 })
}

// A client that takes nothing for a while is cut off, one that is slow is not.
func TestAScrapeGoesOnWhileItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScrapes(pageOf(16 << 20))
		network := retraintest.NewNetwork()
		server, served := &http.Server{Handler: s}, make(chan error, 1)
		go func() { served <- server.Serve(network) }()
		dial := func() net.Conn {
			c, err := network.Dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			askOn(t, c, "/")
			return c
		}
		stuck, slow := dial(), dial()
		for n := range 16 {
			time.Sleep(answerPatience / 5)
			if _, err := io.CopyN(io.Discard, slow, 1<<20); err != nil {
				t.Fatalf("after %d MiB: %v", n, err)
			}
		}
		if cut := testutil.ToFloat64(s.Dropped.WithLabelValues("unread")); cut != 1 {
			t.Errorf("%v answers were cut off, want that of the other", cut)
		}
		if n, err := io.Copy(io.Discard, stuck); n >= 16<<20 {
			t.Errorf("who did not read was sent %d bytes, %v", n, err)
		}
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// While as many scrapes are rendered as may be, others are told to come later.
func TestRendersAtOnceAreBounded(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := newScrapes(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	}))
	ask := func() int {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Code
	}
	codes := make(chan int, rendersAtOnce)
	for range rendersAtOnce {
		go func() { codes <- ask() }()
		<-entered
	}
	if code := ask(); code != http.StatusServiceUnavailable || testutil.ToFloat64(s.Dropped.WithLabelValues("busy")) != 1 {
		t.Errorf("one too many is answered with %d", code)
	}
	close(leave)
	for range rendersAtOnce {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("answered with %d", code)
		}
	}
}

// Lists of all streams take megabytes. Clients that ask for many at once wait for each other, and not those that ask for
// something else: with 1,024 at once over HTTP/2, one client could use up the memory.
func TestListsAreRenderedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{}, &apitest.FixedView{}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		h := s.Handler()
		ask := func(path string) (int, time.Duration) {
			w, begun := httptest.NewRecorder(), time.Now()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
			return w.Code, time.Since(begun)
		}
		lists := []string{"/api/v1/streams", "/api/v1/baselines", "/api/v1/guards", "/api/v1/alarms", "/api/v1/incidents"}
		for range cap(s.lists.slots) - 1 {
			s.lists.slots <- struct{}{}
		}
		for _, path := range lists {
			if status, took := ask(path); status != http.StatusOK || took > 0 {
				t.Errorf("%s with a free slot: %d after %s", path, status, took)
			}
		}
		s.lists.slots <- struct{}{}
		for _, path := range lists {
			if status, took := ask(path); status != http.StatusServiceUnavailable || took != answerPatience {
				t.Errorf("%s without one: %d after %s", path, status, took)
			}
		}
		for _, path := range []string{"/", "/metrics", "/-/ready", "/api/v1/openapi.json"} {
			if status, took := ask(path); status != http.StatusOK || took > 0 {
				t.Errorf("%s meanwhile: %d after %s", path, status, took)
			}
		}
		go func() {
			time.Sleep(time.Second)
			<-s.lists.slots
		}()
		if status, took := ask(lists[0]); status != http.StatusOK || took != time.Second {
			t.Errorf("when a slot becomes free: %d after %s", status, took)
		}
	})
}

// Over HTTP/2, one client can have 1,024 requests open and read none of the answers. All answers whose size depends on
// telemetry or requests are therefore bounded together; the others are named here.
func TestAnswersThatGrowAreRenderedInTurn(t *testing.T) {
	small := []string{
		"GET /-/healthy", "GET /-/ready", "GET /static/{file...}", "GET /api/v1/openapi.json", "GET /api/v1/retrain-request.schema.json",
		"GET /api/v1/guards/{policy}", "GET /api/v1/sessions", // which only admins may read
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{}, &apitest.FixedView{}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		mux, _, _ := s.routes(s.access())
		h := s.Handler()
		for _, of := range []*scrapes{s.Scrapes, s.lists, s.reads, s.logins} {
			for range cap(of.slots) {
				of.slots <- struct{}{}
			}
		}
		for _, pattern := range mux.patterns {
			path, reads := strings.CutPrefix(pattern, "GET ")
			if !reads {
				continue
			}
			path = strings.NewReplacer("{$}", "", "{", "", "...}", "", "}", "").Replace(path)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
			if waits := w.Code == http.StatusServiceUnavailable; waits == slices.Contains(small, pattern) {
				t.Errorf("%s answers %d although all turns are taken", pattern, w.Code)
			}
		}
	})
}

// A form of somebody who may not send it is answered with a page, which waits for its turn, but not while the form is
// sent. Forms of others never wait: those who read could keep them from deciding.
func TestFormsOfStrangersWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rolesServer(t, Config{})
		h := s.Handler()
		at := "/incidents/" + s.view.Incidents()[0].ID
		send := func(cookie *http.Cookie, body io.Reader) (status int, took time.Duration) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, at, body)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if cookie != nil {
				r.AddCookie(cookie)
			}
			w, begun := httptest.NewRecorder(), time.Now()
			h.ServeHTTP(w, r)
			return w.Code, time.Since(begun)
		}
		const form = "by=a&why=b&decision=comment"
		operator, viewer := sessionOf(t, h, tokenOf(access.Operator)), sessionOf(t, h, tokenOf(access.Viewer))
		for range cap(s.reads.slots) {
			slow, sends := io.Pipe()
			go send(nil, slow)
			defer sends.Close()
		}
		synctest.Wait() // for bodies that do not arrive
		if status, took := send(nil, strings.NewReader(form)); status != http.StatusUnauthorized || took > 0 {
			t.Errorf("beside slow forms: %d after %s", status, took)
		}
		for range cap(s.reads.slots) {
			s.reads.slots <- struct{}{}
		}
		for name, cookie := range map[string]*http.Cookie{"a stranger": nil, "a viewer": viewer} {
			if status, took := send(cookie, strings.NewReader(form)); status != http.StatusServiceUnavailable || took != answerPatience {
				t.Errorf("%s without a free turn: %d after %s", name, status, took)
			}
		}
		if status, took := send(operator, strings.NewReader(form)); status != http.StatusSeeOther || took > 0 {
			t.Errorf("an operator without a free turn: %d after %s", status, took)
		}
		for range cap(s.reads.slots) {
			<-s.reads.slots
		}
		endless := &io.LimitedReader{R: zeros{}, N: 1 << 20}
		if send(nil, endless); 1<<20-endless.N > 32<<10 {
			t.Errorf("%d bytes of a form are read", 1<<20-endless.N)
		}
		if status, _ := send(nil, strings.NewReader(form+strings.Repeat("&x=y", maxReceived))); status != http.StatusBadRequest {
			t.Errorf("a form that is too large: %d", status)
		}
	})
}

// zeros is an endless body.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// While records are read from the ledger, many of them are in memory.
func TestRecordsAreReadByFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{}, apitest.Storied().View, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		h := s.Handler()
		ask := func() (int, time.Duration) {
			w, begun := httptest.NewRecorder(), time.Now()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/retrain-requests?format=ndjson", http.NoBody))
			return w.Code, time.Since(begun)
		}
		for range 2 * cap(s.records.slots) { // each frees its slot
			if status, took := ask(); status != http.StatusOK || took > 0 {
				t.Fatalf("%d after %s", status, took)
			}
		}
		for range cap(s.records.slots) {
			s.records.slots <- struct{}{}
		}
		if status, took := ask(); status != http.StatusServiceUnavailable || took != answerPatience {
			t.Errorf("without a free slot: %d after %s", status, took)
		}
	})
}

// stuck is a client that reads nothing until it is released.
type stuck struct {
	*httptest.ResponseRecorder
	release chan struct{}
}

// Write implements http.ResponseWriter.
func (s stuck) Write(p []byte) (int, error) {
	<-s.release
	return s.ResponseRecorder.Write(p)
}

// Clients that read records slowly must not keep others from reading any.
func TestSlowReadersOfRecordsHoldNoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := apitest.Storied().View
		v.Ordered = nil
		for i := range 2*pageRecords + 50 {
			v.Ordered = append(v.Ordered, ledger.Request{ID: fmt.Sprint("rr_", i)})
		}
		s, err := New(Config{}, v, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		h := s.Handler()
		read := func(w http.ResponseWriter) {
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/retrain-requests?format=ndjson", http.NoBody))
		}
		var slow []stuck
		for range 2 * cap(s.records.slots) {
			slow = append(slow, stuck{httptest.NewRecorder(), make(chan struct{})})
			go read(slow[len(slow)-1])
			synctest.Wait()
		}
		w, begun := httptest.NewRecorder(), time.Now()
		read(w)
		took := time.Since(begun)
		for _, c := range slow {
			close(c.release)
			synctest.Wait() // the view is for one reader at a time
		}
		if w.Code != http.StatusOK || took > 0 {
			t.Fatalf("beside slow clients: %d after %s", w.Code, took)
		}
		d := json.NewDecoder(w.Body)
		for _, q := range v.Ordered {
			var got ledger.Record
			if err := d.Decode(&got); err != nil || got.Request.ID != q.ID {
				t.Fatalf("%s instead of %s: %v", got.Request.ID, q.ID, err)
			}
		}
		if d.More() {
			t.Error("records are repeated")
		}
	})
}

// Strangers can have login pages and pages with invalid links made as often as they like. They keep neither the holder of a
// genuine link from deciding, nor those who read from logging in.
func TestStrangersDoNotDelayLinks(t *testing.T) {
	r := newDeskRig(t)
	link := r.link(r.request(ledger.StateAwaitingApproval))
	at, token, _ := strings.Cut(link, "?token=")
	fill := func(of *scrapes) {
		for range cap(of.slots) {
			of.slots <- struct{}{}
		}
	}
	fill(r.reads)
	if w := ask(r.Server, http.MethodGet, "/login"); w.Code != http.StatusOK {
		t.Errorf("the login page beside readers: %d", w.Code)
	}
	fill(r.logins)
	if w := ask(r.Server, http.MethodGet, link); w.Code != http.StatusOK {
		t.Errorf("the page of a link beside strangers: %d", w.Code)
	}
	if w := r.submit(at, url.Values{"token": {token}, "decision": {"approve"}, "by": {"ann"}, "why": {"x"}}); w.Code != http.StatusOK {
		t.Errorf("a decision beside strangers: %d %s", w.Code, w.Body)
	}
	if w := ask(r.Server, http.MethodGet, link); w.Code != http.StatusGone {
		t.Errorf("the page of a link that has been used: %d", w.Code)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel() // who has no genuine link waits, here in vain
	for _, token := range []string{"", "x", token[:len(token)-2] + "AA"} {
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodGet, at+"?token="+token, http.NoBody))
		if w.Body.Len() > 0 {
			t.Errorf("token %q is answered: %s", token, w.Body)
		}
	}
}

// People who read pages are told in words that they have to wait, and programs in JSON.
func TestRefusedTurnsAreReadable(t *testing.T) {
	for path, want := range map[string]string{"/": "text/plain; charset=utf-8", "/login": "text/plain; charset=utf-8", "/api/v1/deliveries": "application/json"} {
		w := httptest.NewRecorder()
		refuseTurn(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if got := w.Header().Get("Content-Type"); got != want || w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: %d as %s", path, w.Code, got)
		}
	}
}
