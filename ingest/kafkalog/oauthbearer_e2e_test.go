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

	"github.com/rewardwatch/rewardwatch/ingest"
)

// tokenOf returns an unsigned JSON Web Token with an expiry time, as the broker accepts it in its default
// configuration.
func tokenOf(expires time.Time) string {
	part := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"sub":"watcher","iat":%d,"exp":%d}`, expires.Add(-time.Hour).Unix(), expires.Unix())
	return part([]byte(`{"alg":"none"}`)) + "." + part([]byte(claims)) + "."
}

// A real broker accepts the token, refuses an expired one, and accepts a renewed one without a restart.
func TestE2ETokensOnApacheKafka(t *testing.T) {
	cfg, file := startSecuredBroker(t, `sasl.enabled.mechanisms=OAUTHBEARER
listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";
`), filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(tokenOf(time.Now().Add(time.Hour)))
	cfg.SASL = ingest.SASLConfig{Mechanism: ingest.SASLOAuthBearer, TokenFile: file}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sender := exchange(ctx, t, cfg)
	write(tokenOf(time.Now().Add(-time.Minute)))
	if err := sender.Send(ctx, []byte("a"), []byte("c")); err == nil || !strings.Contains(err.Error(), "the broker rejected the token") {
		t.Errorf("with an expired token: %v", err)
	}
	write(tokenOf(time.Now().Add(time.Hour)))
	if err := sender.Send(ctx, []byte("a"), []byte("c")); err != nil {
		t.Errorf("with a renewed token: %v", err)
	}
}
