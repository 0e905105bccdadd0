package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/types"
	"github.com/segmentio/kafka-go/sasl"
)

func write(t *testing.T, file string, text []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, text, mode); err != nil {
		t.Fatal(err)
	}
}

// kerberosFiles writes a keytab of watcher@EXAMPLE.COM and a configuration whose realm has no KDC.
func kerberosFiles(t *testing.T) SASLConfig {
	t.Helper()
	keys := keytab.New()
	if err := keys.AddEntry("watcher", "EXAMPLE.COM", "not a real key", time.Unix(0, 0), 1, etypeID.AES256_CTS_HMAC_SHA1_96); err != nil {
		t.Fatal(err)
	}
	text, err := keys.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := SASLConfig{
		Mechanism: SASLGSSAPI, Username: "watcher", KeytabFile: filepath.Join(dir, "keytab"), KRB5ConfFile: filepath.Join(dir, "krb5.conf"),
	}
	write(t, c.KeytabFile, text, 0o600)
	write(t, c.KRB5ConfFile, []byte("[libdefaults]\n default_realm = EXAMPLE.COM\n dns_lookup_kdc = false\n"), 0o644)
	return c
}

// Settings that cannot work are reported at startup, without revealing a key.
func TestKerberosFilesAreCheckedAtTheStart(t *testing.T) {
	if _, err := kerberosFiles(t).Load(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(c *SASLConfig){
		"chmod 600":                          func(c *SASLConfig) { _ = os.Chmod(c.KeytabFile, 0o644) },
		"no such file":                       func(c *SASLConfig) { c.KeytabFile += ".gone" },
		"is not a keytab":                    func(c *SASLConfig) { write(t, c.KeytabFile, []byte("\x05\x02\x00\x00\x01\x00a s3cret"), 0o600) },
		"no key of watcher@OTHER.COM":        func(c *SASLConfig) { c.Username = "watcher@OTHER.COM" },
		"no key of watcher/host@EXAMPLE.COM": func(c *SASLConfig) { c.Username = "watcher/host" },
		"the Kerberos realm of watcher is unknown: add @REALM": func(c *SASLConfig) { write(t, c.KRB5ConfFile, []byte("[libdefaults]\n"), 0o644) },
		"read the Kerberos configuration":                      func(c *SASLConfig) { c.KRB5ConfFile += ".gone" },
	} {
		c := kerberosFiles(t)
		spoil(&c)
		if _, err := c.Load(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestKerberosWithoutAKDC(t *testing.T) {
	k, err := kerberosFiles(t).Load()
	if err != nil {
		t.Fatal(err)
	}
	ctx := sasl.WithMetadata(t.Context(), &sasl.Metadata{Host: "kafka-1.example.com"})
	if _, _, err := k.Start(ctx); err == nil || !strings.Contains(err.Error(), "request a Kerberos ticket for watcher") {
		t.Error(err)
	}
}

// offer returns the response of a broker to a ticket: the layers that it offers, sealed with a key.
func offer(t *testing.T, layers byte, key types.EncryptionKey) []byte {
	t.Helper()
	w := gssapi.WrapToken{Flags: 1, EC: 12, Payload: []byte{layers, 0, 0, 0}}
	if err := w.SetCheckSum(key, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil {
		t.Fatal(err)
	}
	out, err := w.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A broker that does not know the key of the ticket or requires a security layer is not accepted.
func TestKerberosVerifiesTheBroker(t *testing.T) {
	key := types.EncryptionKey{KeyType: etypeID.AES256_CTS_HMAC_SHA1_96, KeyValue: []byte(strings.Repeat("k", 32))}
	other := types.EncryptionKey{KeyType: key.KeyType, KeyValue: []byte(strings.Repeat("o", 32))}
	for want, challenge := range map[string][]byte{
		"checksum mismatch":            offer(t, noLayer, other),
		"it requires a security layer": offer(t, 4, key),
		"shorter than header":          nil,
	} {
		if _, _, err := (&kerberosSession{key: key}).Next(t.Context(), challenge); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	s := &kerberosSession{key: key}
	done, answer, err := s.Next(t.Context(), offer(t, noLayer|4, key))
	if done || err != nil {
		t.Fatal(done, err)
	}
	var agreed gssapi.WrapToken
	if err := agreed.Unmarshal(answer, false); err != nil {
		t.Fatal(err)
	}
	if ok, err := agreed.Verify(key, keyusage.GSSAPI_INITIATOR_SEAL); !ok || string(agreed.Payload) != "\x01\x00\x00\x00" {
		t.Errorf("the answer is %q, %v", agreed.Payload, err)
	}
	if done, _, err := s.Next(t.Context(), nil); !done || err != nil {
		t.Error(done, err)
	}
}

func TestKerberosConfiguration(t *testing.T) {
	good := SASLConfig{Mechanism: SASLGSSAPI, Username: "watcher@EXAMPLE.COM", KeytabFile: "k"}
	for want, change := range map[string]func(c *SASLConfig){
		"":            func(*SASLConfig) {},
		"mechanism":   func(c *SASLConfig) { c.PasswordFile = "p" },
		"keytab_file": func(c *SASLConfig) { c.KeytabFile = "" },
		"username":    func(c *SASLConfig) { c.Username = "@EXAMPLE.COM" },
	} {
		c := good
		change(&c)
		got := ""
		c.check(func(key, _ string) { got += key })
		if got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
	got := ""
	SASLConfig{Mechanism: SASLPlain, Username: "u", PasswordFile: "p", KRB5ConfFile: "k"}.check(func(key, _ string) { got += key })
	if got != "keytab_file" {
		t.Errorf("krb5_conf_file with PLAIN: %q", got)
	}
}
