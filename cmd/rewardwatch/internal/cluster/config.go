package cluster

// Config configures the topics over which several instances share the work, on the brokers of ingest.kafka. Missing
// topics are created. Without them, a single instance runs.
type Config struct {
	UnitsTopic       string `yaml:"units_topic"`       // topic of episodes and blocks to judge
	CheckpointsTopic string `yaml:"checkpoints_topic"` // compacted topic of the state, instead of checkpoint.directory
}

// Enabled reports whether there may be other instances.
func (c Config) Enabled() bool { return c != Config{} }
