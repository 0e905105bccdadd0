//go:build e2e

package kafkalog

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// startKDC starts a KDC in a directory. run runs its script.
func startKDC(t *testing.T, dir string) (run func(args ...string)) {
	t.Helper()
	env := append(os.Environ(), "KERBEROS_DIR="+dir, "KERBEROS_PORT="+deploytest.FreePorts(t, 1)[0])
	run = func(args ...string) {
		t.Helper()
		cmd := exec.Command("../../deploy/local/kerberos.sh", args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("kerberos.sh %v: %v\n%s", args, err, out)
		}
	}
	t.Cleanup(func() { run("stop") })
	run("start")
	return run
}

// A real broker accepts the ticket of a real KDC. A key that the KDC has replaced is refused. Once the keytab has the
// new key, it is accepted without a restart.
func TestE2EKerberosOnApacheKafka(t *testing.T) {
	dir := t.TempDir()
	kdc, keytab := startKDC(t, dir), filepath.Join(dir, "watcher.keytab")
	kdc("keytab", "kafka/127.0.0.1", filepath.Join(dir, "broker.keytab"))
	kdc("keytab", "watcher", keytab)
	cfg := startSecuredBroker(t, `sasl.enabled.mechanisms=GSSAPI
sasl.kerberos.service.name=kafka
listener.name.sasl_plaintext.gssapi.sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required \
  useKeyTab=true storeKey=true keyTab="`+filepath.Join(dir, "broker.keytab")+`" principal="kafka/127.0.0.1@REWARDWATCH.TEST";
`, "JAVA_TOOL_OPTIONS=-Djava.security.krb5.conf="+filepath.Join(dir, "krb5.conf"))
	cfg.SASL = ingest.SASLConfig{
		Mechanism: ingest.SASLGSSAPI, Username: "watcher", KeytabFile: keytab, KRB5ConfFile: filepath.Join(dir, "krb5.conf"),
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sender := exchange(ctx, t, cfg)
	kdc("keytab", "watcher", filepath.Join(dir, "new.keytab"))
	if err := sender.Send(ctx, []byte("a"), []byte("c")); err == nil || !strings.Contains(err.Error(), "request a Kerberos ticket for watcher") {
		t.Errorf("with a replaced key: %v", err)
	}
	if err := os.Rename(filepath.Join(dir, "new.keytab"), keytab); err != nil {
		t.Fatal(err)
	}
	if err := sender.Send(ctx, []byte("a"), []byte("c")); err != nil {
		t.Errorf("with the new key: %v", err)
	}
	cfg.SASL.ServiceName = "other"
	other, err := NewSender(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Send(ctx, []byte("a"), []byte("c")); err == nil || !strings.Contains(err.Error(), "the service other/127.0.0.1") {
		t.Errorf("with a service that the KDC does not know: %v", err)
	}
}
