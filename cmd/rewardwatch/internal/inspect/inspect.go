package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// inspectOptions are the flags of inspect.
type inspectOptions struct {
	config, policy, topic, propose, registry string
	brokers                                  []string
	records                                  int64
}

// NewCommand returns the inspect command.
func NewCommand(c *terminal.Console) *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect [flags] FILE...|TOPIC...",
		Short: "Summarize telemetry and propose a configuration for it",
		Long: "Reads NDJSON, CSV and Stable-Baselines3 monitor.csv files (plain, gzip or zstd; - for standard input), or Kafka topics with\n" +
			"the given names. Topics are read without a consumer group, and nothing is written to Kafka.\n" +
			"Prints a summary for each policy and group, the problems found, and a matching configuration.\n" +
			"For records that are not telemetry v1, also proposes a format and a mapping, and shows records before and after it.\n" +
			"For feedback in separate records, files or topics, also proposes how to join it.\n" +
			"Exits with 2 if there is no valid event.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runInspect(cmd.Context(), c, o, args) },
	}
	cmd.Flags().StringVar(&o.config, "config", "", "configuration file with the brokers, group_by and false_alarms")
	cmd.Flags().StringVar(&o.topic, "topic", "", "topic whose format and mapping apply to the files; required if the configuration has more than one topic")
	cmd.Flags().StringVar(&o.policy, "policy", "", "policy to assign to the rows of monitor.csv files, instead of env_id")
	cmd.Flags().StringVar(&o.propose, "propose", "", "new file to write the proposed configuration to")
	cmd.Flags().StringSliceVar(&o.brokers, "brokers", nil, "Kafka brokers as host:port, overriding those in the configuration")
	cmd.Flags().StringVar(&o.registry, "registry", "", "schema registry URL, for messages in Confluent's wire format")
	cmd.Flags().Int64Var(&o.records, "records", 200_000, "number of most recent messages to read from each topic; 0 for all")
	return cmd
}

// study is one run of inspect. It may read the telemetry several times: as configured, with the formats that it has
// recognized, and with feedback joined.
type study struct {
	console *terminal.Console
	options inspectOptions
	cfg     *config.Config
	args    []string
	topic   bool                          // args are topics instead of files
	spooled string                        // copy of the standard input, "" if it is not read
	shapes  []*shape                      // the recognized records of each topic
	joined  map[string][]*wire.Unfinished // by policy whose feedback is joined as proposed, the episodes that would otherwise have no end
}

func runInspect(ctx context.Context, c *terminal.Console, o inspectOptions, args []string) error {
	cfg, err := o.load()
	if err != nil {
		return err
	}
	topic, err := isTopic(args)
	if err != nil {
		return err
	}
	if topic {
		cfg.Ingest.Log.Directory = "" // topics are in Kafka, even if the configuration reads a local log
		cfg.Ingest.Kafka = cfg.Ingest.Kafka.Only(args...)
	} else if len(args) == 1 && locallog.IsLog(args[0]) && !cfg.Ingest.IsLocal() {
		cfg.Ingest.Log.Directory = args[0]
	}
	for _, arg := range args {
		if err := checkKafka(cfg, arg, topic); err != nil {
			return err
		}
	}
	s := &study{console: c, options: o, cfg: cfg, args: args, topic: topic, joined: map[string][]*wire.Unfinished{}}
	remove, err := s.spool()
	if err != nil {
		return err
	}
	defer remove()
	r, err := s.run(ctx)
	if r == nil {
		return err
	}
	if r.Accepted == 0 {
		err = errors.Join(err, s.nothingFits(), terminal.ErrNoEvent)
	}
	return errors.Join(err, o.conclude(c, *r, s.cfg))
}

// spool copies the standard input to a file, so that it can be read again. The caller must remove it.
func (s *study) spool() (remove func(), err error) {
	at := slices.Index(s.args, "-")
	if at < 0 {
		return func() {}, nil
	}
	f, err := os.CreateTemp("", "rewardwatch-inspect-*")
	if err != nil {
		return nil, fmt.Errorf("buffer standard input: %w", err)
	}
	remove = func() { _ = os.Remove(f.Name()) } // a temporary file that nothing else needs
	_, err = io.Copy(f, s.console.In)
	if err = errors.Join(err, f.Close()); err != nil {
		remove()
		return nil, fmt.Errorf("buffer standard input: %w", err)
	}
	s.args = slices.Clone(s.args)
	s.args[at], s.spooled = f.Name(), f.Name()
	return remove, nil
}

// run reads the telemetry until its formats and joins are known. It returns nil if nothing could be read.
func (s *study) run(ctx context.Context) (*inspection, error) {
	if _, err := s.recognize(ctx); err != nil {
		return nil, s.named(err)
	}
	i, counts, err := s.read(ctx)
	if err != nil && counts.Read == 0 {
		return nil, err
	}
	if err == nil && s.join(i) {
		i, counts, err = s.read(ctx)
	}
	r := i.report(counts, s.topic)
	s.complete(&r)
	return &r, err
}

// join configures feedback that seems to be delayed, and reports whether there is any.
func (s *study) join(i *inspector) bool {
	var entries []engine.PolicyConfig
	for _, p := range i.order {
		if c := p.joins.propose(); c.Enabled() {
			entries = append(entries, engine.PolicyConfig{Match: escapeGlob(p.name), Config: p.cfg, Feedback: c})
			s.joined[p.name] = nil
			for _, g := range p.report().Groups {
				if g.NoEnd != nil {
					s.joined[p.name] = append(s.joined[p.name], g.NoEnd)
				}
			}
		}
	}
	s.cfg.Policies = append(entries, s.cfg.Policies...)
	return len(entries) > 0
}

// complete adds to a report the findings of earlier reads.
func (s *study) complete(r *inspection) {
	for _, f := range s.shapes {
		if f.changed() || len(s.shapes) > 1 {
			r.shapes, r.Shapes = append(r.shapes, f), append(r.Shapes, f.report())
		}
	}
	for at := range r.Policies {
		p := &r.Policies[at]
		ends, proposed := s.joined[p.Policy]
		if p.Feedback != nil {
			p.Feedback.Proposed = proposed
		}
		p.warn(ends)
	}
}

// load returns the configuration for the inspection. It monitors everything, even if the given file does not, and takes
// every baseline from the telemetry itself.
func (o inspectOptions) load() (*config.Config, error) {
	if o.records < 0 {
		return nil, errors.New("--records must not be negative")
	}
	cfg, err := config.Load(o.config)
	if err != nil {
		return nil, err
	}
	if len(o.brokers) > 0 {
		cfg.Ingest.Kafka.Brokers = o.brokers
	}
	cfg.Policies = append(cfg.Policies, engine.PolicyConfig{Match: "*", Config: watch.DefaultConfig()})
	for i := range cfg.Policies {
		p := &cfg.Policies[i]
		p.Signals, p.Baseline.From, p.Baseline.File = []string{"*"}, watch.FromWarmup, ""
	}
	return cfg, nil
}

// isTopic reports whether the arguments are topics: none of them names a file.
func isTopic(args []string) (bool, error) {
	missing := ""
	for i, arg := range args {
		_, err := os.Stat(arg)
		absent := errors.Is(err, fs.ErrNotExist) && arg != "-"
		switch {
		case err != nil && !absent && arg != "-":
			return false, fmt.Errorf("read telemetry: %w", err)
		case i > 0 && absent != (missing != ""):
			return false, fmt.Errorf("%q is not a file, and topics cannot be combined with files", cmp.Or(missing, arg))
		case absent:
			missing = arg
		}
	}
	return missing != "", nil
}

// checkKafka checks the Kafka settings of the command line; the configuration has been checked.
func checkKafka(cfg *config.Config, arg string, topic bool) error {
	var err error
	cfg.Ingest.Kafka.Check(func(path, msg string) {
		if path == "topic" {
			err = errors.Join(err, fmt.Errorf("%q is neither a file nor a topic name, which %s", arg, msg))
		} else {
			err = errors.Join(err, fmt.Errorf("ingest.kafka.%s: %s", path, msg))
		}
	})
	if letters := cfg.Ingest.DeadLetters.Topic; topic && letters == arg {
		err = errors.Join(err, fmt.Errorf("%q is the dead letter topic", arg))
	}
	return err
}

// read reads the files or the topics according to the configuration.
func (s *study) read(ctx context.Context) (*inspector, recording.Counts, error) {
	i := newInspector(s.cfg, time.Now())
	bar := terminal.NewProgress(s.console)
	defer bar.Clear()
	progress := func(done, total int64) {
		share := 0.0
		if total > 0 {
			share = float64(done) / float64(total)
		}
		bar.Show("Reading", share, "")
	}
	if s.topic {
		counts, err := i.readTopics(ctx, s.options.records, progress)
		return i, counts, s.named(err)
	}
	read, err := s.cfg.Ingest.Files(s.options.topic, s.args)
	if err != nil {
		return i, recording.Counts{}, err
	}
	read.Policy, read.Refuse, read.Progress = s.options.policy, i.refuse, progress
	counts, err := recording.ReadFiles(ctx, read, s.args, i)
	return i, counts, err
}

// readTopics reads the newest records of several topics together.
func (i *inspector) readTopics(ctx context.Context, newest int64, progress func(done, total int64)) (recording.Counts, error) {
	i.merger, i.way = order.NewMerger(&order.Batches{}), &engine.Route{From: &engine.Delivery{}}
	at, topics, err := i.cfg.Ingest.Open()
	if err != nil {
		return recording.Counts{}, err
	}
	var sources []recording.Source
	for index, topic := range topics {
		sources = append(sources, func(ctx context.Context, p ingest.Processor) (recording.Counts, error) {
			return recording.ReadTopic(ctx, recording.TopicConfig{
				Place: at.In(topic.Name), Format: topic.Format, Index: index, Newest: newest, Refuse: i.refuse, Progress: progress,
			}, p)
		})
	}
	counts, err := recording.Merge(ctx, sources, i)
	i.release()
	return counts, err
}

// named adds to an error how the arguments were interpreted.
func (s *study) named(err error) error {
	switch {
	case !s.topic || err == nil:
		return err
	case errors.Is(err, ingest.ErrNoTopic):
		return fmt.Errorf("%q is neither a file nor a topic of %s", s.args[0], strings.Join(s.cfg.Ingest.Kafka.Brokers, ", "))
	}
	return fmt.Errorf("%q is not a file, and no topic with that name can be read: %w", s.args[0], err)
}

// conclude prints the report and writes the proposal. It never replaces a file, which may be in use.
func (o inspectOptions) conclude(c *terminal.Console, r inspection, cfg *config.Config) error {
	if r.Accepted > 0 {
		r.Config = new(propose(r, cfg, o.config))
	}
	err := c.Print(r, func(w io.Writer) error { return inspectionText(w, r, o.propose == "") })
	if r.Config == nil || o.propose == "" || err != nil {
		return err
	}
	f, err := os.OpenFile(o.propose, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write the proposed configuration: %w", err)
	}
	_, err = f.WriteString(*r.Config)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the proposed configuration: %w", err)
	}
	return nil
}
