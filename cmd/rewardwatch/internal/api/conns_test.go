package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// One address cannot use up the connections: scrapes from another one are answered.
func TestConnectionsAreCapped(t *testing.T) {
	s, err := New(Config{Listen: "127.0.0.1:0"}, &apitest.FixedView{}, &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	var idle []net.Conn
	for range connectionsOfOne + 20 {
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
	}
	cut, late := 0, time.Now().Add(8*time.Second) // after 10 s those are closed that ask nothing
	for _, c := range idle[connectionsOfOne:] {
		if err := c.SetReadDeadline(late); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			cut++
		}
	}
	if cut != 20 {
		t.Errorf("%d of 20 connections too many were closed", cut)
	}
	elsewhere := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 7)}}).DialContext,
	}}
	w, err := elsewhere.Get("http://" + s.Addr() + "/metrics")
	if err != nil || w.StatusCode != http.StatusOK {
		t.Fatalf("a scrape is answered with %v, %v", w, err)
	}
	_ = w.Body.Close()
	for _, c := range idle {
		_ = c.Close()
	}
	listener := s.endpoints[0].listener.(*capped)
	testkit.Eventually(t, "all places are free", func() bool {
		listener.mu.Lock()
		defer listener.mu.Unlock()
		return listener.all == 0 && len(listener.open) == 0
	})
	for i := range connectionsOfAll + 100 {
		listener.take(clientOf(fmt.Sprintf("127.1.%d.%d:1", i>>8, i&255)), connectionsOfOne)
	}
	if listener.all != connectionsOfAll {
		t.Errorf("%d connections in all", listener.all)
	}
}

// One client of IPv6 has all addresses of its network: were each counted for itself, it could open all connections.
func TestConnectionsOfOneNetworkAreCapped(t *testing.T) {
	listener := newCapped(nil, (&Server{}).trusts())
	for i := range connectionsOfOne + 20 {
		if let := listener.take(clientOf(fmt.Sprintf("[2001:db8:0:7::%x]:1024", i+1)), connectionsOfOne); let != (i < connectionsOfOne) {
			t.Fatalf("connection %d: %v", i, let)
		}
	}
	if !listener.take(clientOf("[2001:db8:0:8::1]:1024"), connectionsOfOne) {
		t.Error("another network is kept out")
	}
	for address, want := range map[string]string{
		"192.0.2.7:1": "192.0.2.7/32", "[::ffff:192.0.2.7]:1": "192.0.2.7/32", "[fd00::1%eth0]:1": "fd00::/64", "[fd00::2:0:0:1]:1": "fd00::/64",
	} {
		if got := clientOf(address); got != netip.MustParsePrefix(want) {
			t.Errorf("%s is of %s, want %s", address, got, want)
		}
	}
}

// A page that has pointed a name of its own at this machine reads nothing.
func TestNamesOfOthersAreRefused(t *testing.T) {
	s, err := New(Config{Listen: "127.0.0.1:0", ExternalURL: "https://rewardwatch.example/x"}, apitest.SomeView(), &apitest.FixedOrders{}, prometheus.NewRegistry(), nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for host, want := range map[string]int{
		"": 200, "localhost:9464": 200, "LOCALHOST": 200, "[::1]:9464": 200, "127.0.0.1": 200, "rewardwatch.example": 200, "Rewardwatch.Example:443": 200,
		"evil.example": 403, "evil.example:9464": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example": 403,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+"/api/v1/streams", nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			r.Host = host
		}
		w, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		if w.StatusCode != want {
			t.Errorf("%q is answered with %d, want %d", host, w.StatusCode, want)
		}
	}
}

// Where the service can be reached from elsewhere, the name of its machine leads to it, also from the machine itself.
func TestTheNameOfTheMachineIsAccepted(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for listen, want := range map[string]int{"127.0.0.1:9464": 403, "[::1]:9464": 403, "localhost:9464": 403, ":9464": 200, "0.0.0.0:9464": 200, "192.0.2.7:9464": 200} {
		s := quietServer(t, Config{Listen: listen}, apitest.SomeView(), nil)
		for host, want := range map[string]int{name: want, name + ":9464": want, "evil.example": 403} {
			r := httptest.NewRequest(http.MethodGet, "/api/v1/streams", nil)
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9464}))
			r.Host = host
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("listening on %s, %q is answered with %d, want %d", listen, host, w.Code, want)
			}
		}
	}
}

// All agents behind a proxy that wait for a guard have a connection each, beside those of people. The others of all
// connections are for who does not use the proxy.
func TestProxiesHaveMoreConnections(t *testing.T) {
	s := &Server{cfg: Config{TrustedProxies: []string{"10.1.0.0/16", "2001:db8::7"}}}
	listener := newCapped(nil, s.trusts())
	taken := func(address string) (n int) {
		for from, most := listener.limit(address); listener.take(from, most); n++ {
		}
		return n
	}
	for _, tt := range []struct {
		address string
		want    int
	}{
		{"[2001:db8::7]:80", connectionsOfProxies}, {"[::ffff:10.1.0.1]:80", 0}, {"10.1.0.2:80", 0}, // all proxies together
		{"[2001:db8::8]:80", connectionsOfOne}, {"[2001:db8::9]:80", 0}, // beside a proxy in their network
		{"10.2.0.1:80", connectionsOfAll - connectionsOfProxies - connectionsOfOne},
	} {
		if got := taken(tt.address); got != tt.want {
			t.Errorf("%s has %d connections, want %d", tt.address, got, tt.want)
		}
	}
	from, _ := listener.limit("10.1.0.1:80")
	listener.give(from)
	if got := taken("10.1.0.2:80"); got != 1 {
		t.Errorf("in the place of another proxy are %d connections", got)
	}
}
