//go:build e2e

package kafkalog

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// startKDC starts a KDC in a directory. run calls its script.
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

// startKerberosBroker starts a broker that requires a ticket on its second port.
func startKerberosBroker(t *testing.T, dir string) (address string) {
	t.Helper()
	ports := deploytest.FreePorts(t, 3)
	listeners := fmt.Sprintf("PLAINTEXT://127.0.0.1:%s,SASL_PLAINTEXT://127.0.0.1:%s,CONTROLLER://127.0.0.1:%s", ports[0], ports[1], ports[2])
	properties := filepath.Join(dir, "kerberos.properties")
	text := "listeners=" + listeners + "\nadvertised.listeners=" + listeners + `
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=GSSAPI
sasl.kerberos.service.name=kafka
listener.name.sasl_plaintext.gssapi.sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required \
  useKeyTab=true storeKey=true keyTab="` + filepath.Join(dir, "broker.keytab") + `" principal="kafka/127.0.0.1@REWARDWATCH.TEST";
`
	if err := os.WriteFile(properties, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	deploytest.StartKafka(t, "../..", ports[0], ports[2], "KAFKA_PROPERTIES="+properties,
		"JAVA_TOOL_OPTIONS=-Djava.security.krb5.conf="+filepath.Join(dir, "krb5.conf"))("topic", "secured")
	return "127.0.0.1:" + ports[1]
}

// A real broker accepts the ticket of a real KDC. A key that the KDC has replaced is refused, and accepted again once the
// keytab has the new one, without a restart.
func TestE2EKerberosOnApacheKafka(t *testing.T) {
	dir := t.TempDir()
	kdc, keytab := startKDC(t, dir), filepath.Join(dir, "watcher.keytab")
	kdc("keytab", "kafka/127.0.0.1", filepath.Join(dir, "broker.keytab"))
	kdc("keytab", "watcher", keytab)
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers, cfg.Topic = []string{startKerberosBroker(t, dir)}, "secured"
	cfg.SASL = ingest.SASLConfig{
		Mechanism: ingest.SASLGSSAPI, Username: "watcher", KeytabFile: keytab, KRB5ConfFile: filepath.Join(dir, "krb5.conf"),
	}
	log, err := Open(cfg, "secured", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := log.Append(ctx, 0, Record{Key: []byte("a"), Value: []byte("b")}); err != nil {
		t.Fatal(err)
	}
	read := 0
	if _, err := log.ReadOn(ctx, 0, 0, 1, func(Record) error { read++; return nil }); err != nil || read != 1 {
		t.Errorf("%d records were read, %v", read, err)
	}
	sender, err := NewSender(cfg, nil) // which connects for each message
	if err != nil {
		t.Fatal(err)
	}
	kdc("keytab", "watcher", filepath.Join(dir, "new.keytab"))
	if err := sender.Send(ctx, []byte("a"), []byte("c")); err == nil || !strings.Contains(err.Error(), "requesting a Kerberos ticket for watcher") {
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
