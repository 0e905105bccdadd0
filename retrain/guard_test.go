package retrain

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestAddressesThatAreNotPublic(t *testing.T) {
	tests := map[string]string{ // "" where it is public
		"127.0.0.1": "a loopback", "127.8.9.1": "a loopback", "::1": "a loopback", "::ffff:127.0.0.1": "a loopback", "64:ff9b::7f00:1": "a loopback",
		"10.0.0.1": "a private", "172.16.0.1": "a private", "172.31.255.255": "a private", "192.168.1.1": "a private", "fd12:3456::1": "a private",
		"::ffff:10.1.2.3": "a private", "64:ff9b::a01:203": "a private",
		"169.254.169.254": "a link-local", "fe80::1": "a link-local", "fe80::1%eth0": "a link-local", "::ffff:169.254.169.254": "a link-local",
		"224.0.0.1": "a link-local", "ff02::1": "a link-local", "ff01::1": "a link-local", "239.1.1.1": "a multicast", "ff0e::1": "a multicast",
		"0.0.0.0": "the unspecified", "::": "the unspecified", "::ffff:0.0.0.0": "the unspecified",
		"0.1.2.3": "a reserved", "100.64.0.1": "a reserved", "192.0.0.8": "a reserved", "198.18.0.1": "a reserved", "240.0.0.1": "a reserved",
		"255.255.255.255": "a reserved", "::7f00:1": "a reserved", "2002:7f00:1::": "a reserved", "2001:0:4136:e378:8000:63bf:3fff:fdd2": "a reserved", "fec0::1": "a reserved", "64:ff9b:1::1": "a reserved",
		"140.82.121.6": "", "172.32.0.1": "", "100.128.0.1": "", "169.253.1.1": "", "2606:50c0:8000::153": "", "::ffff:140.82.121.6": "", "64:ff9b::8c52:7906": "",
	}
	for address, want := range tests {
		if got := notPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
		err := judgeAddress(net.JoinHostPort(address, "443"))
		if (want == "") != (err == nil) || err != nil && (!errors.Is(err, errRefusedAddress) || !strings.Contains(err.Error(), "allow_private")) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, bad := range []string{"", "localhost:80", "127.0.0.1", "/run/docker.sock"} {
		if err := judgeAddress(bad); !errors.Is(err, errRefusedAddress) {
			t.Errorf("%q: %v, want a refusal", bad, err)
		}
	}
}

// The name of a host says nothing: what counts is the address that the connection is made to.
func TestPrivateAddressesAreRefusedWhenTheyAreDialled(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	at, err := url.Parse(server.URL)
	check(t, err)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		for _, allowed := range []bool{false, true} {
			target := Target{Name: "t", Timeout: defaultTimeout, AllowPrivate: allowed, Webhook: "http://" + host + ":" + at.Port(), SecretFile: secretFile(t, testSecret)}
			published, err := newSchema()
			check(t, err)
			a, err := newAdapter(target, means{schema: published, transport: newTransport})
			check(t, err)
			o := a.send(t.Context(), testMessage(t, "ranker", nil))
			switch {
			case allowed && o.result != ResultRejected, !allowed && o.result != ResultRefused:
				t.Errorf("%s, allowed %t: %+v", host, allowed, o)
			case !allowed && (o.status != 0 || !strings.Contains(o.err, "127.0.0.1 is a loopback address")):
				t.Errorf("%s: %+v, want the address in the error", host, o)
			}
		}
	}
}

// A name that is public when it is looked up first, and private the next time, is let through neither time: the second connection is
// judged by its own address.
func TestNameThatComesToMeanAnotherAddress(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was told") }))
	defer inside.Close()
	at, err := url.Parse(inside.URL)
	check(t, err)
	names := &nameServer{}
	names.start(t)
	resolver := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: names.dial}
	t.Cleanup(func() { net.DefaultResolver = resolver })
	l := line{transport: newTransport(Target{})}
	for i, address := range []string{"192.0.2.1", "127.0.0.1", "::ffff:127.0.0.1", "::1"} {
		names.means.Store(new(netip.MustParseAddr(address)))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // for the one that is public, which nobody has
		a := l.post(ctx, "http://rebind.test:"+at.Port(), nil)
		cancel()
		if refused := a.result == ResultRefused; refused != (i > 0) || a.status != 0 {
			t.Errorf("%s: %+v", address, a.outcome)
		}
	}
}

// nameServer answers questions for any name.
type nameServer struct {
	conn  net.PacketConn
	means atomic.Pointer[netip.Addr] // what they mean now
}

func (n *nameServer) start(t *testing.T) {
	t.Helper()
	var err error
	n.conn, err = net.ListenPacket("udp", "127.0.0.1:0")
	check(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.serve()
	}()
	t.Cleanup(func() {
		check(t, n.conn.Close())
		<-ended
	})
}

func (n *nameServer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "udp", n.conn.LocalAddr().String())
}

// serve has an answer for one of the two questions that are asked of a name, and none for the other one (RFC 1035, section 4).
func (n *nameServer) serve() {
	packet := make([]byte, 1500)
	for {
		_, from, err := n.conn.ReadFrom(packet)
		if err != nil {
			return
		}
		const header, typeA, typeAAAA = 12, 1, 28
		end := header + bytes.IndexByte(packet[header:], 0) + 1 + 4 // of the question: a name, its type and its class
		answer := slices.Concat(packet[:2], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, packet[header:end])
		asked := binary.BigEndian.Uint16(packet[end-4:])
		if a := *n.means.Load(); a.Is4() && asked == typeA || a.Is6() && asked == typeAAAA {
			address := a.AsSlice()
			answer[7] = 1
			answer = slices.Concat(answer, []byte{0xc0, header}, packet[end-4:end], []byte{0, 0, 0, 0, 0, byte(len(address))}, address)
		}
		_, _ = n.conn.WriteTo(answer, from) // who asked asks again
	}
}

// Of a proxy the guard would only see the proxy's own address.
func TestProxyMayBePrivate(t *testing.T) {
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.RequestURI }))
	defer proxy.Close()
	by, err := url.Parse(proxy.URL)
	check(t, err)
	transport := newTransport(Target{}).(guarded)
	transport.proxy = func(*http.Request) (*url.URL, error) { return by, nil }
	transport.proxied.(*http.Transport).Proxy = transport.proxy
	a := line{transport: transport}.post(context.Background(), "http://trainer.example/retrain", nil)
	if a.result != ResultDelivered || asked != "http://trainer.example/retrain" {
		t.Errorf("%+v, the proxy was asked for %q", a.outcome, asked)
	}
	transport.proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	if a := (line{transport: transport}).post(context.Background(), proxy.URL, nil); a.result != ResultRefused {
		t.Errorf("without a proxy: %+v, want refused", a.outcome)
	}
}
