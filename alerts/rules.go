package alerts

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
)

// Files that WriteRules writes.
const (
	RulesFile     = "rewardwatch.rules.yml"
	RulesTestFile = "rewardwatch.rules.test.yml"
)

// RulesOptions says what the Prometheus rules are for.
type RulesOptions struct {
	// Push leaves out what the Notifier pushes to Alertmanager, drift and telemetry faults, or each would page twice.
	Push bool
	// GroupLabels are the label names by which policies are grouped, such as env and label_region.
	GroupLabels []string
	// WebhooksGivenUp is the name of the counter of webhooks that were given up, RetrainRequests that of the gauge of requests by
	// state; "" leaves their rules out.
	WebhooksGivenUp, RetrainRequests string
	// Memory and MemoryLimit are the names of the gauges of the memory in use and of what may be; "" leaves their rule out.
	Memory, MemoryLimit string
	// UnitDelay is the name of the histogram of the time from a unit's last event to its judgement; "" leaves out the rules of
	// freshness. FreshWithin is among its bounds.
	UnitDelay string
}

// WriteRules writes Prometheus recording and alerting rules and promtool's unit tests of them into a directory, which it makes where
// it is missing. Check them with `promtool test rules rewardwatch.rules.test.yml`.
func WriteRules(dir string, opts RulesOptions) error {
	rules := allRules(opts)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the directory of the rules: %w", err)
	}
	if err := writeYAML(filepath.Join(dir, RulesFile), rulesFile(allRecords(opts), rules)); err != nil {
		return err
	}
	return writeYAML(filepath.Join(dir, RulesTestFile), rulesTestFile(rules))
}

func writeYAML(path string, content any) error {
	b, err := yaml.MarshalWithOptions(content, yaml.IndentSequence(true), yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	const head = "# Written by `rewardwatch rules`: changes are lost when it runs again.\n"
	if err := os.WriteFile(path, append([]byte(head), b...), 0o644); err != nil {
		return fmt.Errorf("writing rules: %w", err)
	}
	return nil
}

// record is a recording rule, for what several alerts look at.
type record struct {
	name, expr string
}

// rule is an alerting rule with the tests that show it firing and not firing.
type rule struct {
	alert       string
	expr        string
	wait        string // how long the expression must hold
	severity    Severity
	summary     string
	description string
	dashboard   string // uid of the dashboard that shows more
	tests       []ruleTest
}

// Runbooks is where the pages lie that say what to do about each alert: a heading for each.
const Runbooks = "https://github.com/rewardwatch/rewardwatch/blob/main/docs/runbooks.md"

// The uids of the dashboards that alerts lead to, as package dashboards has them.
const (
	policyDashboard     = "rewardwatch-policy"
	retrainingDashboard = "rewardwatch-retraining"
	serviceDashboard    = "rewardwatch-service"
)

// annotations are those of the alert. The path of the dashboard is within Grafana, whose address is not known here.
func (r rule) annotations() ruleAnnotations {
	path := "/d/" + cmp.Or(r.dashboard, serviceDashboard)
	if r.dashboard == policyDashboard {
		path += "?var-policy={{ $labels.policy | urlquery }}"
	}
	return ruleAnnotations{
		Summary: r.summary, Description: r.description, Runbook: runbook(r.alert), Dashboard: path,
	}
}

// ruleTest feeds series, a sample a minute, and says which alerts of the rule's name fire at a time.
type ruleTest struct {
	name   string
	series []inputSeries
	at     string
	fires  []expectedAlert // none: it must not fire
}

// The files of Prometheus and promtool, as far as they are written here.
type (
	rulesDocument struct {
		Groups []ruleGroup `yaml:"groups"`
	}
	ruleGroup struct {
		Name  string `yaml:"name"`
		Rules []any  `yaml:"rules"` // recordRule or alertRule
	}
	recordRule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	alertRule struct {
		Alert       string            `yaml:"alert"`
		Expr        string            `yaml:"expr"`
		For         string            `yaml:"for,omitempty"`
		Labels      map[string]string `yaml:"labels"`
		Annotations ruleAnnotations   `yaml:"annotations"`
	}
	ruleAnnotations struct {
		Summary     string `yaml:"summary"`
		Description string `yaml:"description"`
		Runbook     string `yaml:"runbook_url"`
		Dashboard   string `yaml:"dashboard_url"`
	}

	testDocument struct {
		RuleFiles          []string   `yaml:"rule_files"`
		EvaluationInterval string     `yaml:"evaluation_interval"`
		Tests              []testCase `yaml:"tests"`
	}
	testCase struct {
		Name   string          `yaml:"name"`
		Every  string          `yaml:"interval"`
		Series []inputSeries   `yaml:"input_series"`
		Alerts []alertRuleTest `yaml:"alert_rule_test"`
	}
	inputSeries struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	}
	alertRuleTest struct {
		At     string          `yaml:"eval_time"`
		Alert  string          `yaml:"alertname"`
		Expect []expectedAlert `yaml:"exp_alerts"`
	}
	expectedAlert struct {
		Labels      map[string]string `yaml:"exp_labels"`
		Annotations ruleAnnotations   `yaml:"exp_annotations"`
	}
)

// rulesFile has the recording rules in a group of their own, as mixins have, and the alerts in another.
func rulesFile(records []record, rules []rule) rulesDocument {
	var doc rulesDocument
	if len(records) > 0 {
		group := ruleGroup{Name: "rewardwatch.rules"}
		for _, r := range records {
			group.Rules = append(group.Rules, recordRule{Record: r.name, Expr: r.expr})
		}
		doc.Groups = append(doc.Groups, group)
	}
	group := ruleGroup{Name: "rewardwatch"}
	for _, r := range rules {
		group.Rules = append(group.Rules, alertRule{
			Alert: r.alert, Expr: r.expr, For: r.wait,
			Labels:      map[string]string{"severity": string(r.severity)},
			Annotations: r.annotations(),
		})
	}
	doc.Groups = append(doc.Groups, group)
	return doc
}

func rulesTestFile(rules []rule) testDocument {
	doc := testDocument{RuleFiles: []string{RulesFile}, EvaluationInterval: "1m"}
	for _, r := range rules {
		for _, t := range r.tests {
			expect := make([]expectedAlert, len(t.fires))
			for i, e := range t.fires {
				expect[i] = e.with("severity", string(r.severity))
				expect[i].Annotations.Runbook = r.annotations().Runbook
				expect[i].Annotations.Dashboard = strings.Replace(r.annotations().Dashboard, "{{ $labels.policy | urlquery }}", e.Labels["policy"], 1)
			}
			doc.Tests = append(doc.Tests, testCase{
				Name: r.alert + ": " + t.name, Every: "1m", Series: t.series,
				Alerts: []alertRuleTest{{At: t.at, Alert: r.alert, Expect: expect}},
			})
		}
	}
	return doc
}

// with adds a label to a copy.
func (e expectedAlert) with(name, value string) expectedAlert {
	labels := map[string]string{name: value}
	for n, v := range e.Labels {
		labels[n] = v
	}
	e.Labels = labels
	return e
}
