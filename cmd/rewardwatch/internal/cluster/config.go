package cluster

// Config configures the topics through which several instances share the work, on the brokers in `ingest.kafka`. Missing
// topics are created. Without both topics, only a single instance can run.
type Config struct {
	UnitsTopic       string `yaml:"units_topic"`       // topic for episodes and blocks to be judged
	CheckpointsTopic string `yaml:"checkpoints_topic"` // compacted topic for the state, used instead of `checkpoint.directory`
}

// Enabled reports whether there may be other instances.
func (c Config) Enabled() bool { return c != Config{} }
