package api

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
)

// Limits on wrong tokens and passwords: how many an address may send in a burst, how often after that, and how many
// addresses are remembered. An address that has sent too many is refused until it has waited; others are not affected.
// Clients behind one proxy share its address, and therefore its limit.
const (
	guessBurst     = 10
	guessEvery     = time.Second // for each further attempt
	guessAddresses = 4096
)

// guesses counts wrong tokens and passwords by address.
type guesses struct {
	now     func() time.Time
	log     zerolog.Logger
	Refused *prometheus.CounterVec

	mu     sync.Mutex
	failed map[netip.Prefix]guesser
}

type guesser struct {
	wrong float64 // decreases by one each guessEvery
	at    time.Time
}

func newGuesses(now func() time.Time, log zerolog.Logger) *guesses {
	g := &guesses{
		now: now, log: log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute}), failed: map[netip.Prefix]guesser{},
		Refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: names.MetricTokensRefused, Help: "Requests rejected because of an invalid token or password, or because the client address is throttled.",
		}, []string{"reason"}),
	}
	g.Refused.WithLabelValues("wrong")
	g.Refused.WithLabelValues("throttled")
	return g
}

// allowed reports whether the address of a request may try another token or password.
func (g *guesses) allowed(r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wrong(clientOf(r.RemoteAddr)) < guessBurst {
		return true
	}
	g.Refused.WithLabelValues("throttled").Inc()
	return false
}

// failedBy records that a request has a wrong token or password.
func (g *guesses) failedBy(r *http.Request, what string) {
	g.Refused.WithLabelValues("wrong").Inc()
	g.log.Warn().Str("from", r.RemoteAddr).Str("path", r.URL.Path).Msg("rejected a request with an invalid " + what)
	g.mu.Lock()
	defer g.mu.Unlock()
	from := clientOf(r.RemoteAddr)
	wrong := g.wrong(from) + 1
	if len(g.failed) >= guessAddresses {
		g.forget()
	}
	g.failed[from] = guesser{wrong, g.now()}
}

// wrong returns the number of wrong tokens and passwords from an address that still count.
func (g *guesses) wrong(from netip.Prefix) float64 {
	s, known := g.failed[from]
	if !known {
		return 0
	}
	return max(0, s.wrong-float64(g.now().Sub(s.at))/float64(guessEvery))
}

// forget makes room: it drops the addresses whose wrong tokens no longer count, or else one other address.
func (g *guesses) forget() {
	for from := range g.failed {
		if g.wrong(from) == 0 {
			delete(g.failed, from)
		}
	}
	for from := range g.failed {
		if len(g.failed) < guessAddresses {
			return
		}
		delete(g.failed, from)
	}
}
