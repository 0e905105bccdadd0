//go:build e2e

package kafkalog

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// tokenOf returns an unsigned JSON Web Token, as the broker accepts in its default configuration, which expires at a time.
func tokenOf(expires time.Time) string {
	part := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"sub":"watcher","iat":%d,"exp":%d}`, expires.Add(-time.Hour).Unix(), expires.Unix())
	return part([]byte(`{"alg":"none"}`)) + "." + part([]byte(claims)) + "."
}

// startOAuthBroker starts a broker that requires a token on its second port.
func startOAuthBroker(t *testing.T) (address string) {
	t.Helper()
	ports := deploytest.FreePorts(t, 3)
	listeners := fmt.Sprintf("PLAINTEXT://127.0.0.1:%s,SASL_PLAINTEXT://127.0.0.1:%s,CONTROLLER://127.0.0.1:%s", ports[0], ports[1], ports[2])
	properties := filepath.Join(t.TempDir(), "oauth.properties")
	text := "listeners=" + listeners + "\nadvertised.listeners=" + listeners + `
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=OAUTHBEARER
listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";
`
	if err := os.WriteFile(properties, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	deploytest.StartKafka(t, "../..", ports[0], ports[2], "KAFKA_PROPERTIES="+properties)("topic", "secured")
	return "127.0.0.1:" + ports[1]
}

// A real broker accepts the token, refuses one that has expired, and accepts a renewed one without a restart.
func TestE2ETokensOnApacheKafka(t *testing.T) {
	broker, file := startOAuthBroker(t), filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(tokenOf(time.Now().Add(time.Hour)))
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers, cfg.Topic = []string{broker}, "secured"
	cfg.SASL = ingest.SASLConfig{Mechanism: ingest.SASLOAuthBearer, TokenFile: file}
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
	write(tokenOf(time.Now().Add(-time.Minute)))
	if err := sender.Send(ctx, []byte("a"), []byte("c")); err == nil || !strings.Contains(err.Error(), "the broker rejected the token") {
		t.Errorf("with an expired token: %v", err)
	}
	write(tokenOf(time.Now().Add(time.Hour)))
	if err := sender.Send(ctx, []byte("a"), []byte("c")); err != nil {
		t.Errorf("with a renewed token: %v", err)
	}
}
