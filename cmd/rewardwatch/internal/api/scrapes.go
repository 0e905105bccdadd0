package api

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
)

// Limits on scrapes: the number rendered at once, and the number of bytes of rendered answers that may wait for slow
// clients. A single answer may be larger, as limits.series bounds it.
const (
	rendersAtOnce  = 8
	unreadAnswers  = 64 << 20
	answerPatience = 10 * time.Second // for the client to read one piece
	answerPiece    = 64 << 10
)

// scrapes renders each answer before writing it, so that a slow client does not hold up others. If too much is waiting
// to be read, it cuts off the answer that has waited longest.
type scrapes struct {
	next    http.Handler
	slots   chan struct{}
	most    int // bytes that may be unread
	Dropped *prometheus.CounterVec

	mu     sync.Mutex
	unread []*unread // oldest first
	bytes  int       // total size of unread
	last   int       // size of the last answer
}

// unread is an answer that is being written.
type unread struct {
	size int
	conn *http.ResponseController
	cut  bool
}

func newScrapes(next http.Handler) *scrapes {
	s := &scrapes{
		next: next, slots: make(chan struct{}, rendersAtOnce), most: unreadAnswers,
		Dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: names.MetricScrapesDropped, Help: "Scrapes that were rejected because too many were running, or aborted because the client read too slowly.",
		}, []string{"reason"}),
	}
	s.Dropped.WithLabelValues("busy")
	s.Dropped.WithLabelValues("unread")
	return s
}

// ServeHTTP implements http.Handler.
func (s *scrapes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case s.slots <- struct{}{}:
	default:
		s.Dropped.WithLabelValues("busy").Inc()
		http.Error(w, "too many concurrent scrapes: try again later", http.StatusServiceUnavailable)
		return
	}
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	answer := s.render(r, s.next, last+last/8)
	s.mu.Lock()
	s.last = answer.body.Len()
	s.mu.Unlock()
	s.send(w, answer)
}

// inTurn returns a handler that renders the answers of next like scrapes, except that they wait for a slot.
func (s *scrapes) inTurn(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.takesTurn(w, r) {
			s.send(w, s.render(r, next, 0))
		}
	}
}

// takesTurn reports whether a request has got a slot, which its caller must free. If there is none in time, it answers the
// request.
func (s *scrapes) takesTurn(w http.ResponseWriter, r *http.Request) bool {
	if s.turn(r.Context()) {
		return true
	}
	if r.Context().Err() == nil {
		refuseTurn(w, r)
	}
	return false
}

// turn waits for a slot, and reports whether there was one in time.
func (s *scrapes) turn(ctx context.Context) bool {
	patience := time.NewTimer(answerPatience)
	defer patience.Stop()
	select {
	case s.slots <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-patience.C:
	}
	return false
}

// refuseTurn answers a request that has got no slot, with a text if it is for a page.
func refuseTurn(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		http.Error(w, "The service is answering too many requests. Reload the page in a few seconds.", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(`{"error":"too many concurrent requests: try again later"}` + "\n")) // a client that has disconnected needs no answer
}

// render renders an answer of approximately the given size, and frees the slot.
func (s *scrapes) render(r *http.Request, next http.Handler, size int) *rendered {
	defer func() { <-s.slots }()
	answer := &rendered{header: http.Header{}, status: http.StatusOK}
	answer.body.Grow(size)
	next.ServeHTTP(answer, r)
	return answer
}

func (s *scrapes) send(w http.ResponseWriter, answer *rendered) {
	maps.Copy(w.Header(), answer.header)
	w.Header().Set("Content-Length", strconv.Itoa(answer.body.Len()))
	w.WriteHeader(answer.status)
	s.write(w, answer.body.Bytes())
}

// write writes an answer for as long as the client reads each piece within answerPatience. If it does not, or if the
// answer is cut off, the rest is not written and the connection ends. It reports whether all has been written.
func (s *scrapes) write(w http.ResponseWriter, body []byte) bool {
	u := &unread{size: len(body), conn: http.NewResponseController(w)}
	s.begin(u)
	defer s.end(u)
	ends := time.Now().Add(time.Minute)
	for piece := range slices.Chunk(body, answerPiece) {
		if !s.extend(u, ends) {
			s.Dropped.WithLabelValues("unread").Inc()
			return false
		}
		if _, err := w.Write(piece); errors.Is(err, os.ErrDeadlineExceeded) {
			s.Dropped.WithLabelValues("unread").Inc()
			return false
		} else if err != nil {
			return false // the client disconnected
		}
	}
	return true
}

// begin registers an answer, and cuts off the oldest ones if all together are too large.
func (s *scrapes) begin(u *unread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread, s.bytes = append(s.unread, u), s.bytes+u.size
	left := s.bytes
	for _, old := range s.unread {
		if left <= s.most || old == u {
			return
		}
		if left -= old.size; !old.cut {
			old.cut = true
			_ = old.conn.SetWriteDeadline(time.Unix(1, 0)) // a writer without deadlines never waits
		}
	}
}

// extend gives the client more time for the next piece of an answer, unless the answer has been cut off.
func (s *scrapes) extend(u *unread, ends time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.cut {
		return false
	}
	deadline := time.Now().Add(answerPatience)
	if deadline.After(ends) {
		deadline = ends
	}
	_ = u.conn.SetWriteDeadline(deadline)
	return true
}

func (s *scrapes) end(u *unread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = slices.DeleteFunc(s.unread, func(have *unread) bool { return have == u })
	s.bytes -= u.size
}

// rendered is an answer that has not been written yet. It implements http.ResponseWriter.
type rendered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *rendered) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *rendered) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *rendered) Write(p []byte) (int, error) { return r.body.Write(p) }
