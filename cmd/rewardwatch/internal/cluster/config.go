package cluster

// Config lets several instances of one consumer group share the work, over two more topics on the brokers of
// ingest.kafka, which are created if missing. Without it one instance works alone.
type Config struct {
	UnitsTopic       string `yaml:"units_topic"`       // carries units from the instances that read the telemetry to those that judge policies
	CheckpointsTopic string `yaml:"checkpoints_topic"` // keeps the state, in place of checkpoint.directory; compacted
}

// Enabled reports whether there may be other instances.
func (c Config) Enabled() bool { return c != Config{} }
