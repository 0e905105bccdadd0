// Package demo runs the whole service on one machine, with a small broker, simulated agents and one drift.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/app"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/replay"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// The course of the demo: the number of healthy episodes after the baseline is frozen, and the time limit for each
// step.
const (
	demoHealthy  = 300
	demoPatience = 100 * time.Second
	demoPulse    = 200 * time.Millisecond
)

// NewCommand returns the demo command.
func NewCommand(c *terminal.Console) *cobra.Command {
	var keep bool
	var training time.Duration
	var brokers []string
	cmd := &cobra.Command{
		Use:   "demo [--keep [--training DURATION]]",
		Short: "Run a demo of the whole service on this machine",
		Long: "Starts a small Kafka broker, simulated agents, a webhook receiver and the service. Then changes the environment,\n" +
			"shows the alarm and the signed webhook, and exits after about 20 seconds. With --keep, the retraining waits for\n" +
			"your approval in the console. Its simulated job then releases a new version of the policy, and the demo shows the\n" +
			"outcome and runs until it is interrupted. Needs no other software.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), c, &demo{brokers: brokers, keep: keep, training: training})
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "require approval of the retraining, and run until interrupted")
	cmd.Flags().DurationVar(&training, "training", 20*time.Second, "with --keep, how long the simulated training job takes")
	cmd.Flags().StringSliceVar(&brokers, "brokers", nil,
		"addresses of Kafka brokers with an empty topic agent-telemetry, which the demo writes to; by default it starts "+brokerName)
	return cmd
}

// demo holds the running parts of the demo.
type demo struct {
	console  *terminal.Console
	progress *terminal.Progress
	dir      string
	brokers  []string
	keep     bool // run until interrupted, with a retraining that a person must approve
	training time.Duration
	config   config.Config
	receiver *receiver
	agents   *simulation
	app      *app.App
}

// runDemo starts all parts from the broker to the agents, narrates, and stops the parts in reverse order. It starts no
// broker if it was given the addresses of one.
func runDemo(ctx context.Context, c *terminal.Console, d *demo) (err error) {
	d.console, d.progress = c, terminal.NewProgress(c)
	if d.dir, err = os.MkdirTemp("", "rewardwatch-demo-"); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()

	if len(d.brokers) == 0 {
		own, startErr := startBroker()
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, own.stop()) }()
		d.brokers = own.addresses
	}
	if d.receiver, err = startReceiver(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.receiver.stop()) }()
	if err := d.configure(); err != nil {
		return err
	}
	log := zerolog.New(zerolog.ConsoleWriter{Out: c.Err, NoColor: true}).Level(zerolog.ErrorLevel)
	if d.app, err = app.New(ctx, &d.config, func() error { return errors.New("the demo has no configuration file") }, log); err != nil {
		return err
	}
	return d.together(ctx)
}

// together runs the service and the agents during the narration.
func (d *demo) together(ctx context.Context) error {
	running, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	errs := make([]error, 2)
	start := func(i int, ctx context.Context, run func(context.Context) error) {
		wg.Go(func() {
			if errs[i] = run(ctx); errs[i] != nil {
				stop(errs[i])
			}
		})
	}
	d.agents = newSimulation(d.config.Ingest.Kafka.Brokers, d.config.Ingest.Kafka.Topic)
	start(0, running, d.app.Run)
	start(1, running, d.agents.run)
	err := d.story(running)
	stop(nil)
	wg.Wait()
	return errors.Join(err, errors.Join(errs...))
}

// configure writes the configuration that a user would write, with free ports and a temporary directory.
func (d *demo) configure() error {
	secret := filepath.Join(d.dir, "trainer.secret")
	if err := os.WriteFile(secret, []byte(d.receiver.secret+"\n"), 0o600); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	watched := watch.DefaultConfig()
	watched.FalseAlarms.Per = watch.Per{Amount: 20000, Unit: watch.PerEpisodes}
	d.config = config.Default()
	d.config.Ingest.Kafka.Brokers = d.brokers
	d.config.Ingest.DeadLetters.Directory = filepath.Join(d.dir, "dead-letters")
	d.config.Checkpoint = engine.CheckpointConfig{Directory: filepath.Join(d.dir, "checkpoints"), Every: model.Duration(2 * time.Second)}
	d.config.Policies = []engine.PolicyConfig{{Match: "*", Config: watched}}
	d.config.Retrain.Ledger.SQLite = filepath.Join(d.dir, "ledger.db")
	d.config.Retrain.Targets = []target.Target{{
		Name: "trainer", Webhook: d.receiver.url(), SecretFile: secret, AllowPrivate: true, Timeout: model.Duration(5 * time.Second),
		CompletesWithin: model.Duration(time.Hour),
	}}
	d.config.Retrain.Recipes = filepath.Join(d.dir, "recipes")
	d.config.Retrain.Triggers = []retrain.Trigger{{
		On: retrain.OnIncident, Recipe: "ranker", Target: "trainer", Cooldown: model.Duration(time.Hour), Approval: d.keep,
	}}
	d.config.HTTP.Listen = "127.0.0.1:0"
	return d.writeRecipe()
}

// demoRecipe is the recipe for retraining the demo's policy.
const demoRecipe = `contract:
  objective: "{{ policy }} earns more than its offers cost, although customers like one of them less"
  hypothesis: "customers changed with env_version {{ versions.after.env_version }}; a policy trained on their behavior performs better"
  expected: mean return > 0 over 200 episodes within 24h
  owner: you@demo.example
config:
  algorithm: tabular-q
  learning_rate: 0.1
  episodes: 5000
  experience: "{{ offsets.drifted }}"
`

func (d *demo) writeRecipe() error {
	file := filepath.Join(d.config.Retrain.Recipes, "ranker.yaml")
	err := errors.Join(os.Mkdir(d.config.Retrain.Recipes, 0o700), os.WriteFile(file, []byte(demoRecipe), 0o600))
	if err == nil {
		d.config.Recipes, err = recipe.Load(d.config.Retrain.Recipes, d.config.Settings().GroupLabels())
	}
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}

// story waits for each event in turn and narrates it.
func (d *demo) story(ctx context.Context) error {
	d.say("A Kafka broker listens on %s; %d simulated agents run the policy checkout-ranker.",
		d.config.Ingest.Kafka.Brokers[0], simulatedAgents)
	if err := d.wait(ctx, "starting", func() (float64, bool) { return 0, d.app.Ready() == nil }); err != nil {
		return err
	}
	page := d.app.Server.URL()
	d.say("Open %s/ while the demo is running (metrics: %s/metrics).", page, page)

	if err := d.wait(ctx, "collecting the baseline", d.learning); err != nil {
		return err
	}
	g, _ := d.group()
	d.say("The baseline is frozen: %d episodes, id %s. The budget is 1 false alarm per %s episodes.",
		g.Baseline.Units, g.Baseline.ID, terminal.Thousands(int64(g.Promise.N)))
	calm := g.Units
	if err := d.wait(ctx, "watching agents without drift", func() (float64, bool) {
		g, _ := d.group()
		return float64(g.Units-calm) / demoHealthy, g.Units-calm >= demoHealthy
	}); err != nil {
		return err
	}
	if n := len(d.app.Incidents()); n > 0 {
		return fmt.Errorf("demo: %d alarms before the drift", n)
	}
	d.say("%d episodes without drift, and no alarm. Now the environment drifts: customers like offer_b less (env_version 41 -> 42).", demoHealthy)
	before := d.agents.ended.Load()
	d.agents.drifted.Store(true)
	return d.discovery(ctx, page, before)
}

// discovery narrates the alarm and its consequences.
func (d *demo) discovery(ctx context.Context, page string, before int64) error {
	var incidents []alerts.Incident
	if err := d.wait(ctx, "drifting, waiting for the alarm", func() (float64, bool) {
		incidents = d.app.Incidents()
		return 0, len(incidents) > 0
	}); err != nil {
		return err
	}
	d.say("Drift detected, about %d episodes after it began:\n", d.agents.ended.Load()-before)
	for _, a := range incidents[0].Alarms {
		if err := d.console.Print(replay.AlarmLine(a), func(w io.Writer) error { return terminal.AlarmText(w, a) }); err != nil {
			return err
		}
	}
	if d.keep {
		return d.approval(ctx, page, incidents[0].ID)
	}
	if err := d.wait(ctx, "waiting for the webhook", func() (float64, bool) { return 0, d.receiver.got() != nil }); err != nil {
		return err
	}
	if err := d.delivery(); err != nil {
		return err
	}
	d.say("To approve a retraining in the console, run the demo with --keep.")
	return nil
}

// approval asks for an approval of the retraining, and narrates the progress of the request until ctx ends. An
// interrupt is not an error.
func (d *demo) approval(ctx context.Context, page, incident string) error {
	err := d.followed(ctx, page, incident)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (d *demo) followed(ctx context.Context, page, incident string) error {
	var waiting []ledger.Request
	var failed error
	if err := d.wait(ctx, "waiting for the retrain request", func() (float64, bool) {
		waiting, failed = d.app.Server.Requests.Unfinished(ctx, 1)
		return 0, len(waiting) > 0 || failed != nil
	}); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("demo: %w", failed)
	}
	d.say("The retrain request %s for incident %s is waiting for your approval: %s/incidents/%[2]s", waiting[0].ID, incident, page)
	d.say("Running at %s/. Press Ctrl-C to stop.", page)
	if err := until(ctx, func() bool { return d.receiver.got() != nil }); err != nil {
		return err
	}
	if err := d.delivery(); err != nil {
		return err
	}
	if err := d.retrained(ctx, page); err != nil {
		return err
	}
	d.say("Running at %s/. Press Ctrl-C to stop.", page)
	return until(ctx, func() bool { return false })
}

// delivery narrates the delivery that the webhook receiver received.
func (d *demo) delivery() error {
	order := d.receiver.got()
	if order.err != nil {
		return fmt.Errorf("demo: the receiver rejected the webhook: %w", order.err)
	}
	d.say("The webhook receiver received retrain request %s for incident %s. The signature is valid.", order.id, order.incident)
	d.say("The recipe expects the new version to achieve: %s.", order.expected)
	return nil
}

func (d *demo) learning() (float64, bool) {
	g, any := d.group()
	return float64(g.Units) / float64(watch.DefaultConfig().Baseline.Units), any && g.Baseline.ID != "" && !g.Baseline.Provisional
}

func (d *demo) group() (finding.GroupSummary, bool) {
	for _, s := range d.app.Summaries() {
		for _, g := range s.Groups {
			return g, true
		}
	}
	return finding.GroupSummary{}, false
}

// wait shows progress until done returns true. It fails if patience or ctx ends first.
func (d *demo) wait(ctx context.Context, what string, done func() (share float64, finished bool)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, demoPatience, fmt.Errorf("demo: %s took longer than %s", what, demoPatience))
	defer cancel()
	defer d.progress.Clear()
	return until(ctx, func() bool {
		share, finished := done()
		if !finished {
			d.progress.Show(what, share, fmt.Sprintf("%d events, %d episodes", d.agents.sent.Load(), d.agents.ended.Load()))
		}
		return finished
	})
}

// until waits until done returns true. If ctx ends first, it returns the cause.
func until(ctx context.Context, done func() bool) error {
	pulse := time.NewTicker(demoPulse)
	defer pulse.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-pulse.C:
		}
	}
	return nil
}

// say narrates on standard error. Results go to standard output.
func (d *demo) say(format string, args ...any) {
	d.console.Tell(format, args...)
}
