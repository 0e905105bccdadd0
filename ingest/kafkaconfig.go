package ingest

import (
	"errors"
	"net"
	"regexp"
	"strconv"
	"strings"
)

// KafkaConfig configures where the telemetry is and how to connect to it. Records of aborted transactions are skipped,
// and those of open ones wait. The topic must not be compacted.
type KafkaConfig struct {
	Brokers    []string   `yaml:"brokers"`     // bootstrap brokers, as `host:port`
	Topic      string     `yaml:"topic"`       // topic of the telemetry
	Group      string     `yaml:"group"`       // consumer group, which must be the same for all instances of a cluster
	ClientID   string     `yaml:"client_id"`   // client name, used in broker logs and quotas
	MaxMessage ByteSize   `yaml:"max_message"` // maximum size of a message. Larger messages are rejected
	ReadyLag   int64      `yaml:"ready_lag"`   // maximum lag of a partition, in records, for the service to be ready
	TLS        TLSConfig  `yaml:"tls"`
	SASL       SASLConfig `yaml:"sasl"`
}

// TLSConfig configures TLS for connections.
type TLSConfig struct {
	Enabled      bool `yaml:"enabled"` // encrypt connections
	Certificates `yaml:",inline"`
}

// Certificates configures which servers a client trusts, and the certificate that it presents to them.
type Certificates struct {
	CAFile             string `yaml:"ca_file"`              // PEM file with CA certificates (default: the system's CAs)
	CertFile           string `yaml:"cert_file"`            // client certificate
	KeyFile            string `yaml:"key_file"`             // client key
	ServerName         string `yaml:"server_name"`          // name expected in the server's certificate (default: the server's host name)
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify"` // skip verification of the server's certificate
}

// ErrNoTopic means that the cluster has no topic with that name.
var ErrNoTopic = errors.New("topic not found")

// The SASL mechanisms.
const (
	SASLPlain       = "PLAIN"
	SASLScramSHA256 = "SCRAM-SHA-256"
	SASLScramSHA512 = "SCRAM-SHA-512"
	SASLOAuthBearer = "OAUTHBEARER"
	SASLMSKIAM      = "AWS_MSK_IAM"
	SASLGSSAPI      = "GSSAPI"
)

// The defaults for GSSAPI.
const (
	defaultKRB5Conf = "/etc/krb5.conf"
	defaultService  = "kafka"
)

// SASLConfig configures SASL authentication. With `OAUTHBEARER`, the token is read from its file for each connection,
// so a command in [secrets](#secrets) can renew it. `AWS_MSK_IAM` requires TLS, and uses the region and credentials that
// the AWS SDK finds, for example in the environment variable `AWS_REGION`, or from the role of the machine, task or
// service account. `GSSAPI` is Kerberos: the user name is the principal, whose key is in a keytab. The keytab is read for
// each connection, which obtains its own tickets.
type SASLConfig struct {
	Mechanism    string `yaml:"mechanism"`      // `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`, `AWS_MSK_IAM` or `GSSAPI`
	Username     string `yaml:"username"`       // user name, or for `GSSAPI`, the principal, such as `rewardwatch@EXAMPLE.COM`
	PasswordFile string `yaml:"password_file"`  // password
	PasswordEnv  string `yaml:"password_env"`   // environment variable with the password
	TokenFile    string `yaml:"token_file"`     // token for `OAUTHBEARER`
	KeytabFile   string `yaml:"keytab_file"`    // keytab for `GSSAPI`, with the key of the principal
	KRB5ConfFile string `yaml:"krb5_conf_file"` // Kerberos configuration for `GSSAPI` (default: `/etc/krb5.conf`)
	ServiceName  string `yaml:"service_name"`   // service name in the brokers' principals, for `GSSAPI` (default: `kafka`)
}

// DefaultKafkaConfig returns a configuration that reads the topic agent-telemetry from a broker on this machine.
func DefaultKafkaConfig() KafkaConfig {
	return KafkaConfig{
		Brokers: []string{"127.0.0.1:9092"}, Topic: "agent-telemetry", Group: "rewardwatch", ClientID: "rewardwatch",
		MaxMessage: DefaultMaxRecord, ReadyLag: 10_000,
	}
}

// The bounds of max_message. The minimum is large enough for any useful record. A partition can have several messages
// of the maximum size in memory.
const (
	minMaxMessage = KiB
	maxMaxMessage = 256 * MiB
)

// kafkaName matches the topic names that Kafka accepts.
var kafkaName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// ValidTopic reports whether Kafka accepts name as the name of a topic.
func ValidTopic(name string) bool { return kafkaName.MatchString(name) }

// Check reports every invalid value.
func (c KafkaConfig) Check(report func(path, msg string)) {
	if len(c.Brokers) == 0 {
		report("brokers", "must list at least one broker")
	}
	for i, broker := range c.Brokers {
		if msg := checkAddress(broker); msg != "" {
			report("brokers["+strconv.Itoa(i)+"]", msg)
		}
	}
	if !kafkaName.MatchString(c.Topic) {
		report("topic", "must be 1 to 249 letters, digits, dots, underscores and hyphens")
	}
	if c.Group == "" {
		report("group", "must not be empty")
	}
	if c.ClientID == "" {
		report("client_id", "must not be empty")
	}
	if c.MaxMessage < minMaxMessage || c.MaxMessage > maxMaxMessage {
		report("max_message", "must be from "+minMaxMessage.String()+" to "+maxMaxMessage.String())
	}
	if c.ReadyLag < 0 {
		report("ready_lag", "must not be negative")
	}
	c.TLS.check(func(key, msg string) { report("tls."+key, msg) })
	c.SASL.check(func(key, msg string) { report("sasl."+key, msg) })
	if c.SASL.Mechanism == SASLMSKIAM && !c.TLS.Enabled {
		report("sasl.mechanism", SASLMSKIAM+" requires tls.enabled: MSK brokers support it only over TLS")
	}
}

func checkAddress(broker string) (msg string) {
	host, port, err := net.SplitHostPort(broker)
	if err != nil || host == "" {
		return "must be host:port"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "the port must be from 1 to 65535"
	}
	return ""
}

func (c TLSConfig) check(report func(key, msg string)) {
	if !c.Enabled && c != (TLSConfig{}) {
		report("enabled", "must be true, or the other keys of tls have no effect")
	}
	c.Check(report)
}

// Check reports keys that contradict each other.
func (c Certificates) Check(report func(key, msg string)) {
	if (c.CertFile == "") != (c.KeyFile == "") {
		report("cert_file", "must be set together with key_file")
	}
	if c.InsecureSkipVerify && c.CAFile != "" {
		report("insecure_skip_verify", "must be false, or ca_file has no effect")
	}
}

func (c SASLConfig) check(report func(key, msg string)) {
	switch c.Mechanism {
	case "":
		if c != (SASLConfig{}) {
			report("mechanism", "must be set, or the other keys of sasl have no effect")
		}
		return
	case SASLOAuthBearer:
		if c != (SASLConfig{Mechanism: c.Mechanism, TokenFile: c.TokenFile}) || c.TokenFile == "" {
			report("token_file", "must be set instead of username and password with mechanism: "+SASLOAuthBearer)
		}
		return
	case SASLMSKIAM:
		if c != (SASLConfig{Mechanism: c.Mechanism}) {
			report("mechanism", SASLMSKIAM+" takes its credentials from the AWS SDK: remove the other keys of sasl")
		}
		return
	case SASLGSSAPI:
		c.checkKerberos(report)
		return
	case SASLPlain, SASLScramSHA256, SASLScramSHA512:
	default:
		report("mechanism", "must be "+SASLPlain+", "+SASLScramSHA256+", "+SASLScramSHA512+", "+SASLOAuthBearer+", "+SASLMSKIAM+" or "+SASLGSSAPI)
	}
	if c.TokenFile != "" {
		report("token_file", "requires mechanism: "+SASLOAuthBearer)
	}
	if c.KeytabFile != "" || c.KRB5ConfFile != "" || c.ServiceName != "" {
		report("keytab_file", "must be empty, like krb5_conf_file and service_name, unless mechanism is "+SASLGSSAPI)
	}
	if c.Username == "" {
		report("username", "must not be empty")
	}
	if (c.PasswordFile == "") == (c.PasswordEnv == "") {
		report("password_file", "must be set unless password_env is set")
	}
}

func (c SASLConfig) checkKerberos(report func(key, msg string)) {
	if c.PasswordFile != "" || c.PasswordEnv != "" || c.TokenFile != "" {
		report("mechanism", SASLGSSAPI+" takes the key from keytab_file: remove passwords and tokens")
	}
	if c.KeytabFile == "" {
		report("keytab_file", "must be set with mechanism: "+SASLGSSAPI)
	}
	if name, _, _ := strings.Cut(c.Username, "@"); name == "" {
		report("username", "must be the principal, such as rewardwatch@EXAMPLE.COM")
	}
}
