package ingest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// Load reads the certificates that the configuration names. It returns nil if TLS is not enabled.
func (c TLSConfig) Load() (*tls.Config, error) {
	if !c.Enabled {
		return nil, nil
	}
	out := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: c.ServerName, InsecureSkipVerify: c.InsecureSkipVerify,
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA certificate for Kafka: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the CA certificate for Kafka: %s contains no certificate", c.CAFile)
		}
	}
	if c.CertFile != "" {
		pair, err := c.pair()
		if err != nil {
			return nil, fmt.Errorf("read the client certificate for Kafka: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

// pair reads the client's certificate and its key. The checks of ReadSecretFile apply to the key.
func (c TLSConfig) pair() (tls.Certificate, error) {
	certificate, err := os.ReadFile(c.CertFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ReadSecretFile(c.KeyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, []byte(key))
}

// Load reads the secret that the configuration names. It returns nil if no mechanism is configured.
func (c SASLConfig) Load() (sasl.Mechanism, error) {
	switch c.Mechanism {
	case "":
		return nil, nil
	case SASLOAuthBearer:
		_, err := ReadToken(c.TokenFile) // otherwise, the service would start and then fail to connect
		return oauthBearer{c.TokenFile}, err
	case SASLMSKIAM:
		return mskIAM()
	case SASLGSSAPI:
		return newKerberos(c)
	}
	password, err := c.password()
	if err != nil {
		return nil, err
	}
	switch c.Mechanism {
	case SASLPlain:
		return plain.Mechanism{Username: c.Username, Password: password}, nil
	case SASLScramSHA256:
		return scram.Mechanism(scram.SHA256, c.Username, password)
	case SASLScramSHA512:
		return scram.Mechanism(scram.SHA512, c.Username, password)
	}
	return nil, fmt.Errorf("unknown SASL mechanism %q", c.Mechanism)
}

// Secret returns the password or the token, or "" if none is configured.
func (c SASLConfig) Secret() (string, error) {
	if c.TokenFile != "" {
		return ReadToken(c.TokenFile)
	}
	if c.PasswordEnv == "" && c.PasswordFile == "" {
		return "", nil
	}
	return c.password()
}

func (c SASLConfig) password() (string, error) {
	if c.PasswordEnv != "" {
		password := os.Getenv(c.PasswordEnv)
		if password == "" {
			return "", fmt.Errorf("environment variable %s, which must contain the Kafka password, is empty", c.PasswordEnv)
		}
		return password, nil
	}
	text, err := ReadSecretFile(c.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("read the password for Kafka: %w", err)
	}
	password := strings.TrimRight(text, "\r\n")
	if password == "" {
		return "", fmt.Errorf("the Kafka password file %s is empty", c.PasswordFile)
	}
	return password, nil
}
