package consumer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

func writeFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSASL(t *testing.T) {
	const user, password = "watcher", "s3cret, with a comma"
	for mechanism, client := range map[string]sasl.Mechanism{
		ingest.SASLPlain:       plain.Auth{User: user, Pass: password}.AsMechanism(),
		ingest.SASLScramSHA256: scram.Auth{User: user, Pass: password}.AsSha256Mechanism(),
		ingest.SASLScramSHA512: scram.Auth{User: user, Pass: password}.AsSha512Mechanism(),
	} {
		t.Run(mechanism, func(t *testing.T) {
			broker, err := ingesttest.StartSASL(1, "telemetry", kgo.SASL(client), kfake.Superuser(mechanism, user, password))
			if err != nil {
				t.Fatal(err)
			}
			b := benchOn(t, broker)
			b.produce(0, 10)
			b.cfg.SASL = ingest.SASLConfig{
				Mechanism: mechanism, Username: user, PasswordFile: writeFile(t, "password", []byte(password+"\n")),
			}
			m := b.join()
			m.awaitAll(0)
			m.stop()
			t.Setenv("REWARDWATCH_TEST_PASSWORD", password)
			b.cfg.SASL.PasswordFile, b.cfg.SASL.PasswordEnv = "", "REWARDWATCH_TEST_PASSWORD"
			b.produce(0, 10)
			m = b.join()
			m.awaitAll(0)
			m.stop()
			t.Setenv("REWARDWATCH_TEST_PASSWORD", "wrong")
			m = b.join()
			awaitNotReady(t, m, "SASL")
			m.stop()
		})
	}
}

// awaitNotReady waits until the consumer is not ready, for a reason that contains word.
func awaitNotReady(t *testing.T, m *member, word string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	patient := waitContext(t)
	for {
		err := m.consumer.Ready()
		if err != nil && strings.Contains(err.Error(), word) {
			return
		}
		select {
		case <-tick.C:
		case <-patient.Done():
			t.Fatalf("ready: %v, want a reason with %q", err, word)
		}
	}
}

// certificate creates a self-signed certificate for 127.0.0.1, and also returns it in PEM format.
func certificate(t *testing.T) (pair tls.Certificate, cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"kafka.test"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	pair, err = tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair, cert, key
}

func TestTLS(t *testing.T) {
	pair, cert, key := certificate(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	broker, err := ingesttest.StartTLS(1, "telemetry",
		&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert},
		&tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	b := benchOn(t, broker)
	ca, certFile, keyFile := writeFile(t, "ca.pem", cert), writeFile(t, "cert.pem", cert), writeFile(t, "key.pem", key)
	for _, c := range []ingest.TLSConfig{
		{Enabled: true, Certificates: ingest.Certificates{CAFile: ca, CertFile: certFile, KeyFile: keyFile}},
		{Enabled: true, Certificates: ingest.Certificates{CAFile: ca, CertFile: certFile, KeyFile: keyFile, ServerName: "kafka.test"}},
		{Enabled: true, Certificates: ingest.Certificates{InsecureSkipVerify: true, CertFile: certFile, KeyFile: keyFile}},
	} {
		b.cfg.TLS = c
		b.produce(0, 10)
		m := b.join()
		m.awaitAll(0)
		m.stop()
	}
	for reason, c := range map[string]ingest.TLSConfig{
		"unknown authority": {Enabled: true, Certificates: ingest.Certificates{CertFile: certFile, KeyFile: keyFile}},
		"not other.test":    {Enabled: true, Certificates: ingest.Certificates{CAFile: ca, CertFile: certFile, KeyFile: keyFile, ServerName: "other.test"}},
		"certificate":       {Enabled: true, Certificates: ingest.Certificates{CAFile: ca}},
	} {
		b.cfg.TLS = c
		m := b.join()
		awaitNotReady(t, m, reason)
		m.stop()
	}
}

func TestSecretsThatCannotBeRead(t *testing.T) {
	scram := func(c ingest.SASLConfig) func(*ingest.KafkaConfig) {
		c.Mechanism, c.Username = ingest.SASLScramSHA256, "watcher"
		return func(k *ingest.KafkaConfig) { k.SASL = c }
	}
	secure := func(c ingest.TLSConfig) func(*ingest.KafkaConfig) {
		c.Enabled = true
		return func(k *ingest.KafkaConfig) { k.TLS = c }
	}
	const secret = "do not print this"
	bad := writeFile(t, "bad.pem", []byte(secret))
	_, cert, key := certificate(t)
	loose := writeFile(t, "loose.pem", key)
	if err := os.Chmod(loose, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(*ingest.KafkaConfig){
		"no password file":    scram(ingest.SASLConfig{PasswordFile: "/nonexistent"}),
		"empty password file": scram(ingest.SASLConfig{PasswordFile: writeFile(t, "empty", []byte("\n"))}),
		"no such variable":    scram(ingest.SASLConfig{PasswordEnv: "REWARDWATCH_TEST_NO_SUCH_VARIABLE"}),
		"unknown mechanism": func(k *ingest.KafkaConfig) {
			k.SASL = ingest.SASLConfig{Mechanism: "x", PasswordFile: bad}
		},
		"no authority":  secure(ingest.TLSConfig{Certificates: ingest.Certificates{CAFile: "/nonexistent"}}),
		"bad authority": secure(ingest.TLSConfig{Certificates: ingest.Certificates{CAFile: bad}}),
		"bad key":       secure(ingest.TLSConfig{Certificates: ingest.Certificates{CertFile: bad, KeyFile: bad}}),
		"loose key":     secure(ingest.TLSConfig{Certificates: ingest.Certificates{CertFile: writeFile(t, "cert.pem", cert), KeyFile: loose}}),
	} {
		t.Run(name, func(t *testing.T) {
			cfg := ingest.DefaultKafkaConfig()
			set(&cfg)
			_, err := consumer.New(cfg, consumer.Options{Registerer: prometheus.NewRegistry()})
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("error %v, want one without the secret", err)
			}
			if _, err := deadletter.NewTopic(cfg, "letters", zerolog.Nop()); err == nil {
				t.Error("dead letters are written without the secret")
			}
		})
	}
}

func TestKafkaConfigCheck(t *testing.T) {
	check := func(c ingest.KafkaConfig) []string {
		var paths []string
		c.Check(func(path, msg string) { paths = append(paths, path) })
		return paths
	}
	if got := check(ingest.DefaultKafkaConfig()); len(got) > 0 {
		t.Errorf("the defaults are refused: %v", got)
	}
	for want, set := range map[string]func(*ingest.KafkaConfig){
		"brokers":     func(c *ingest.KafkaConfig) { c.Brokers = nil },
		"brokers[1]":  func(c *ingest.KafkaConfig) { c.Brokers = append(c.Brokers, "kafka") },
		"brokers[0]":  func(c *ingest.KafkaConfig) { c.Brokers[0] = "kafka:99999" },
		"topic":       func(c *ingest.KafkaConfig) { c.Topic = "a b" },
		"group":       func(c *ingest.KafkaConfig) { c.Group = "" },
		"client_id":   func(c *ingest.KafkaConfig) { c.ClientID = "" },
		"max_message": func(c *ingest.KafkaConfig) { c.MaxMessage = 1 },
		"ready_lag":   func(c *ingest.KafkaConfig) { c.ReadyLag = -1 },
		"tls.enabled": func(c *ingest.KafkaConfig) { c.TLS.CAFile = "x" },
		"tls.cert_file": func(c *ingest.KafkaConfig) {
			c.TLS = ingest.TLSConfig{Enabled: true, Certificates: ingest.Certificates{KeyFile: "x"}}
		},
		"tls.insecure_skip_verify": func(c *ingest.KafkaConfig) {
			c.TLS = ingest.TLSConfig{Enabled: true, Certificates: ingest.Certificates{CAFile: "x", InsecureSkipVerify: true}}
		},
		"sasl.mechanism":     func(c *ingest.KafkaConfig) { c.SASL.Username = "x" },
		"sasl.username":      func(c *ingest.KafkaConfig) { c.SASL = ingest.SASLConfig{Mechanism: "PLAIN", PasswordEnv: "X"} },
		"sasl.password_file": func(c *ingest.KafkaConfig) { c.SASL = ingest.SASLConfig{Mechanism: "PLAIN", Username: "x"} },
	} {
		c := ingest.DefaultKafkaConfig()
		set(&c)
		if got := check(c); len(got) != 1 || got[0] != want {
			t.Errorf("reported %v, want %s", got, want)
		}
	}
}
