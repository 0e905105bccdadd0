package consumer_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/consumer"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// withoutAWS hides the AWS configuration of the machine, and disables requests for credentials over the network.
func withoutAWS(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
}

// A broker that requires AWS_MSK_IAM gets the request that Amazon documents: it is signed with the credentials of the
// environment for the host of the broker. https://github.com/aws/aws-msk-iam-auth#details
func TestMSKIAM(t *testing.T) {
	withoutAWS(t)
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "not a real key")
	t.Setenv("AWS_SESSION_TOKEN", "of a role")
	pair, cert, _ := certificate(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	broker, err := ingesttest.StartTLS(1, "telemetry", &tls.Config{Certificates: []tls.Certificate{pair}}, &tls.Config{RootCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	var signed atomic.Pointer[map[string]string]
	var refuse atomic.Bool
	acceptMSKIAM(broker, &signed, &refuse)
	b := benchOn(t, broker)
	b.cfg.TLS = ingest.TLSConfig{Enabled: true, Certificates: ingest.Certificates{CAFile: writeFile(t, "ca.pem", cert)}}
	b.cfg.SASL = ingest.SASLConfig{Mechanism: ingest.SASLMSKIAM}
	b.produce(0, 10)
	m := b.join()
	m.awaitAll(0)
	m.stop()
	got := *signed.Load()
	for key, want := range map[string]string{
		"version": "2020_10_22", "action": "kafka-cluster:Connect", "host": "127.0.0.1", "x-amz-algorithm": "AWS4-HMAC-SHA256",
		"x-amz-security-token": "of a role", "x-amz-signedheaders": "host",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if c := got["x-amz-credential"]; !strings.HasPrefix(c, "AKIDEXAMPLE/") || !strings.HasSuffix(c, "/eu-west-1/kafka-cluster/aws4_request") {
		t.Errorf("the credential is %q", c)
	}
	if len(got["x-amz-signature"]) != 64 {
		t.Errorf("the signature is %q", got["x-amz-signature"])
	}
	refuse.Store(true)
	m = b.join()
	awaitNotReady(t, m, "SASL")
	m.stop()
}

// acceptMSKIAM makes the brokers accept AWS_MSK_IAM. They keep the latest request, and refuse it if told to.
func acceptMSKIAM(broker *ingesttest.Broker, signed *atomic.Pointer[map[string]string], refuse *atomic.Bool) {
	broker.Cluster().ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		broker.Cluster().KeepControl()
		answer := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
		answer.SupportedMechanisms = []string{"AWS_MSK_IAM"}
		if req.(*kmsg.SASLHandshakeRequest).Mechanism != "AWS_MSK_IAM" {
			answer.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		}
		return answer, nil, true
	})
	broker.Cluster().ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		broker.Cluster().KeepControl()
		answer := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		var got map[string]string
		if json.Unmarshal(req.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes, &got) != nil || refuse.Load() {
			answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
			return answer, nil, true
		}
		signed.Store(&got)
		return answer, nil, true
	})
}

// Without a region, nothing can be signed. This is reported before the start.
func TestMSKIAMNeedsARegionAndTLS(t *testing.T) {
	withoutAWS(t)
	cfg := ingest.DefaultKafkaConfig()
	cfg.TLS.Enabled, cfg.SASL.Mechanism = true, ingest.SASLMSKIAM
	_, err := consumer.New(cfg, consumer.Options{Registerer: prometheus.NewRegistry()})
	if err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("without a region: %v", err)
	}
	cfg.TLS.Enabled = false
	var paths []string
	cfg.Check(func(path, _ string) { paths = append(paths, path) })
	if len(paths) != 1 || paths[0] != "sasl.mechanism" {
		t.Errorf("without TLS: %v", paths)
	}
}
