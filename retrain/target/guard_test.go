package target

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/certtest"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

func TestAddressesThatAreNotPublic(t *testing.T) {
	tests := map[string]string{ // "" if the address is public
		"127.0.0.1": "a loopback", "127.8.9.1": "a loopback", "::1": "a loopback", "::ffff:127.0.0.1": "a loopback", "64:ff9b::7f00:1": "a loopback",
		"10.0.0.1": "a private", "172.16.0.1": "a private", "172.31.255.255": "a private", "192.168.1.1": "a private", "fd12:3456::1": "a private",
		"::ffff:10.1.2.3": "a private", "64:ff9b::a01:203": "a private",
		"169.254.169.254": "a link-local", "fe80::1": "a link-local", "fe80::1%eth0": "a link-local", "::ffff:169.254.169.254": "a link-local",
		"224.0.0.1": "a link-local", "ff02::1": "a link-local", "ff01::1": "a link-local", "239.1.1.1": "a multicast", "ff0e::1": "a multicast",
		"0.0.0.0": "the unspecified", "::": "the unspecified", "::ffff:0.0.0.0": "the unspecified",
		"0.1.2.3": "a reserved", "100.64.0.1": "a reserved", "192.0.0.8": "a reserved", "198.18.0.1": "a reserved", "240.0.0.1": "a reserved",
		"255.255.255.255": "a reserved", "::7f00:1": "a reserved", "2002:7f00:1::": "a reserved", "2001:0:4136:e378:8000:63bf:3fff:fdd2": "a reserved", "fec0::1": "a reserved", "64:ff9b:1::1": "a reserved",
		// All prefixes in the IANA registries of special-purpose addresses, by their first and last address.
		"192.0.0.0": "a reserved", "192.0.0.255": "a reserved", "192.0.2.1": "a reserved", "192.31.196.1": "a reserved", "192.52.193.1": "a reserved",
		"192.88.99.0": "a reserved", "192.88.99.255": "a reserved", "192.175.48.1": "a reserved", "198.19.255.255": "a reserved",
		"198.51.100.7": "a reserved", "203.0.113.7": "a reserved", "100.127.255.255": "a reserved",
		"100::1": "a reserved", "100:0:0:1::1": "a reserved", "2001:1::1": "a reserved", "2001:2::1": "a reserved", "2001:3::1": "a reserved",
		"2001:4:112::1": "a reserved", "2001:10::1": "a reserved", "2001:20::1": "a reserved", "2001:30::1": "a reserved",
		"2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff": "a reserved", "2001:db8::1": "a reserved", "2001:db8:ffff::1": "a reserved",
		"2002:ffff::1": "a reserved", "2620:4f:8000::1": "a reserved", "3fff::1": "a reserved", "3fff:fff::1": "a reserved", "5f00::1": "a reserved",
		"fdff:ffff::1": "a private", "fc00::1": "a private", "febf::1": "a link-local", "feff::1": "a reserved", "ff05::2": "a multicast",
		// Outside the prefix of the public internet: IPv4-compatible, IPv4-translated, and unallocated addresses.
		"::8c52:7906": "a reserved", "::ffff:0:7f00:1": "a reserved", "200::1": "a reserved", "1fff::1": "a reserved", "4000::1": "a reserved",
		"64:ff9b:2::1": "a reserved", "fe00::1": "a reserved",
		// Embedded addresses are judged like the addresses that they represent.
		"::ffff:192.88.99.1": "a reserved", "::ffff:203.0.113.7": "a reserved", "64:ff9b::c000:201": "a reserved", "64:ff9b::e000:1": "a link-local",
		// The neighbouring addresses are public.
		"192.0.1.1": "", "192.88.98.255": "", "192.88.100.0": "", "198.17.255.255": "", "198.20.0.0": "", "223.255.255.255": "",
		"2001:200::1": "", "2003::1": "", "2620:4f:7fff::1": "", "3ffe::1": "", "2000::1": "",
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

// The name of a host does not matter, only the address that the connection is made to.
func TestPrivateAddressesAreRefusedWhenTheyAreDialled(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	at, err := url.Parse(server.URL)
	check(t, err)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		for _, allowed := range []bool{false, true} {
			target := Target{Name: "t", Timeout: DefaultTimeout, AllowPrivate: allowed, Webhook: "http://" + host + ":" + at.Port(), SecretFile: secretFile(t, retraintest.Secret)}
			published, err := recipe.NewValidator()
			check(t, err)
			a, err := newAdapter(target, Means{Check: published.Check, Transport: NewTransport})
			check(t, err)
			o := a.Send(t.Context(), testMessage(t, "ranker", nil))
			switch {
			case allowed && o.Result != ResultRejected, !allowed && o.Result != ResultRefused:
				t.Errorf("%s, allowed %t: %+v", host, allowed, o)
			case !allowed && (o.Status != 0 || !strings.Contains(o.Err, "127.0.0.1 is a loopback address")):
				t.Errorf("%s: %+v, want the address in the error", host, o)
			}
		}
	}
}

// A name is judged by the address that each connection is made to, whatever it resolved to before.
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
	l := line{transport: transportOf(t, Target{})}
	for _, address := range []string{"127.0.0.1", "::ffff:127.0.0.1", "::1", "127.0.0.9"} {
		names.means.Store(new(netip.MustParseAddr(address)))
		a := l.post(t.Context(), "http://rebind.test:"+at.Port(), nil)
		if a.Result != ResultRefused || a.Status != 0 || !strings.Contains(a.Err, netip.MustParseAddr(address).Unmap().String()+" is") {
			t.Errorf("%s: %+v", address, a.Attempt)
		}
	}
}

// nameServer answers queries for any name.
type nameServer struct {
	conn  net.PacketConn
	means atomic.Pointer[netip.Addr] // the address that names resolve to now
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

// serve answers one of the two queries for a name, and returns an empty answer for the other one (RFC 1035, section
// 4).
func (n *nameServer) serve() {
	packet := make([]byte, 1500)
	for {
		_, from, err := n.conn.ReadFrom(packet)
		if err != nil {
			return
		}
		const header, typeA, typeAAAA = 12, 1, 28
		end := header + bytes.IndexByte(packet[header:], 0) + 1 + 4 // of the query: a name, its type and its class
		answer := slices.Concat(packet[:2], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, packet[header:end])
		asked := binary.BigEndian.Uint16(packet[end-4:])
		if a := *n.means.Load(); a.Is4() && asked == typeA || a.Is6() && asked == typeAAAA {
			address := a.AsSlice()
			answer[7] = 1
			answer = slices.Concat(answer, []byte{0xc0, header}, packet[end-4:end], []byte{0, 0, 0, 0, 0, byte(len(address))}, address)
		}
		_, _ = n.conn.WriteTo(answer, from) // the client asks again
	}
}

// Through a proxy, the guard would only see the proxy's address.
func TestProxyMayBePrivate(t *testing.T) {
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.RequestURI }))
	defer proxy.Close()
	by, err := url.Parse(proxy.URL)
	check(t, err)
	transport := transportOf(t, Target{}).(guarded)
	transport.proxy = func(*http.Request) (*url.URL, error) { return by, nil }
	transport.proxied.(*http.Transport).Proxy = transport.proxy
	a := line{transport: transport}.post(context.Background(), "http://trainer.example/retrain", nil)
	if a.Result != ResultDelivered || asked != "http://trainer.example/retrain" {
		t.Errorf("%+v, the proxy was asked for %q", a.Attempt, asked)
	}
	transport.proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	if a := (line{transport: transport}).post(context.Background(), proxy.URL, nil); a.Result != ResultRefused {
		t.Errorf("without a proxy: %+v, want refused", a.Attempt)
	}
}

func transportOf(t *testing.T, of Target) http.RoundTripper {
	t.Helper()
	transport, err := NewTransport(of)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

// A target with a certificate of a private authority receives requests only from a client that trusts the authority
// and presents a certificate. Its address is still checked.
func TestTargetOfAPrivateAuthority(t *testing.T) {
	authority, dir := certtest.NewAuthority(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	authority.Issue(t, cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	check(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: authority.Pool, ClientAuth: tls.RequireAndVerifyClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	trusted := ingest.Certificates{CAFile: authority.File, CertFile: cert, KeyFile: key}
	for name, tt := range map[string]struct {
		target Target
		want   Result
	}{
		"all":                   {Target{AllowPrivate: true, TLS: trusted}, ResultDelivered},
		"no client certificate": {Target{AllowPrivate: true, TLS: ingest.Certificates{CAFile: authority.File}}, ResultUnreachable},
		"no authority":          {Target{AllowPrivate: true}, ResultUnreachable},
		"a private address":     {Target{TLS: trusted}, ResultRefused},
	} {
		l := line{transport: transportOf(t, tt.target)}
		if a := l.post(t.Context(), server.URL, []byte("{}")); a.Result != tt.want {
			t.Errorf("%s: %+v, want %s", name, a.Attempt, tt.want)
		}
	}
	if _, err := NewTransport(Target{TLS: ingest.Certificates{CAFile: filepath.Join(dir, "none")}}); err == nil {
		t.Error("an authority that does not exist is accepted")
	}
}
