package ingest

import (
	"net"
	"regexp"
	"strconv"
)

// KafkaConfig says where the telemetry is and how to get at it. The topic must not be written in transactions: records
// of aborted ones cannot be told from the others.
type KafkaConfig struct {
	Brokers    []string   `yaml:"brokers"`     // host:port; any of the cluster, it gives the others
	Topic      string     `yaml:"topic"`       // the telemetry
	Group      string     `yaml:"group"`       // consumer group, which instances that share the work have in common
	ClientID   string     `yaml:"client_id"`   // the name under which brokers log and throttle
	MaxMessage ByteSize   `yaml:"max_message"` // a larger message is refused
	ReadyLag   int64      `yaml:"ready_lag"`   // records that a partition may be behind while the service says it is ready
	TLS        TLSConfig  `yaml:"tls"`
	SASL       SASLConfig `yaml:"sasl"`
}

// TLSConfig says how connections are encrypted.
type TLSConfig struct {
	Enabled            bool   `yaml:"enabled"`              // without it nothing is encrypted
	CAFile             string `yaml:"ca_file"`              // PEM; "" for the authorities of the system
	CertFile           string `yaml:"cert_file"`            // PEM, of the client
	KeyFile            string `yaml:"key_file"`             // PEM, of the client
	ServerName         string `yaml:"server_name"`          // that the brokers' certificates are for; "" for their host
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify"` // anyone can then pose as the broker
}

// The SASL mechanisms.
const (
	SASLPlain       = "PLAIN"
	SASLScramSHA256 = "SCRAM-SHA-256"
	SASLScramSHA512 = "SCRAM-SHA-512"
)

// SASLConfig says how the service proves who it is. The password stands in a file or in an environment variable, never
// in the configuration.
type SASLConfig struct {
	Mechanism    string `yaml:"mechanism"`     // "" for none
	Username     string `yaml:"username"`      // of the service
	PasswordFile string `yaml:"password_file"` // holds the password; a line break at its end does not count
	PasswordEnv  string `yaml:"password_env"`  // name of the environment variable that holds the password
}

// DefaultKafkaConfig reads agent-telemetry from a broker on this machine.
func DefaultKafkaConfig() KafkaConfig {
	return KafkaConfig{
		Brokers: []string{"127.0.0.1:9092"}, Topic: "agent-telemetry", Group: "rewardwatch", ClientID: "rewardwatch",
		MaxMessage: DefaultMaxRecord, ReadyLag: 10_000,
	}
}

// The bounds of max_message: the least holds any record that is worth sending, the most is what a partition can have in
// memory several times over.
const (
	minMaxMessage = KiB
	maxMaxMessage = 256 * MiB
)

// kafkaName is what Kafka takes for the name of a topic.
var kafkaName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// ValidTopic reports whether Kafka takes a text for the name of a topic.
func ValidTopic(name string) bool { return kafkaName.MatchString(name) }

// Check reports every value that is out of range.
func (c KafkaConfig) Check(report func(path, msg string)) {
	if len(c.Brokers) == 0 {
		report("brokers", "must name at least one broker")
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
	if (c.CertFile == "") != (c.KeyFile == "") {
		report("cert_file", "must be given together with key_file")
	}
	if c.InsecureSkipVerify && c.CAFile != "" {
		report("insecure_skip_verify", "must be false, or ca_file has no effect")
	}
}

func (c SASLConfig) check(report func(key, msg string)) {
	switch c.Mechanism {
	case "":
		if c != (SASLConfig{}) {
			report("mechanism", "must be given, or the other keys of sasl have no effect")
		}
		return
	case SASLPlain, SASLScramSHA256, SASLScramSHA512:
	default:
		report("mechanism", "must be "+SASLPlain+", "+SASLScramSHA256+" or "+SASLScramSHA512)
	}
	if c.Username == "" {
		report("username", "must not be empty")
	}
	if (c.PasswordFile == "") == (c.PasswordEnv == "") {
		report("password_file", "must be given, or else password_env, and not both")
	}
}
