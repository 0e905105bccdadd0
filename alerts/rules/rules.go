// Package rules writes Prometheus recording and alerting rules, and their promtool tests.
package rules

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/rewardwatch/rewardwatch/alerts"
)

// The files that Write writes.
const (
	RulesFile     = "rewardwatch.rules.yml"
	RulesTestFile = "rewardwatch.rules.test.yml"
)

// Options selects and adapts the Prometheus rules.
type Options struct {
	// Push omits the alerts that the Notifier pushes to Alertmanager, drift and telemetry faults, which would otherwise
	// page twice.
	Push bool
	// GroupLabels are the label names by which policies are grouped, such as env and label_region.
	GroupLabels []string
	// GrafanaURL is the address of the Grafana that has the dashboards. Without it, alerts have no dashboard_url.
	GrafanaURL string
}

// Write writes Prometheus recording and alerting rules, and promtool's unit tests of them, into a directory, which it
// creates if necessary. Check them with `promtool test rules rewardwatch.rules.test.yml`.
func Write(dir string, opts Options) error {
	files, err := Files(opts)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("creating the directory for the rules: %w", err)
	}
	const head = "# Written by `rewardwatch rules`: changes are lost when it runs again.\n"
	for _, name := range []string{RulesFile, RulesTestFile} {
		if err := os.WriteFile(filepath.Join(dir, name), append([]byte(head), files[name]...), 0o644); err != nil {
			return fmt.Errorf("writing rules: %w", err)
		}
	}
	return nil
}

// Files returns the texts that Write writes, without its comment, by their file names.
func Files(opts Options) (map[string][]byte, error) {
	rules := allRules(opts)
	files := map[string][]byte{}
	for name, content := range map[string]any{
		RulesFile:     rulesFile(allRecords(), rules, opts.GrafanaURL),
		RulesTestFile: rulesTestFile(rules, opts.GrafanaURL),
	} {
		text, err := yaml.MarshalWithOptions(content, yaml.IndentSequence(true), yaml.UseLiteralStyleIfMultiline(true))
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", name, err)
		}
		files[name] = text
	}
	return files, nil
}

// record is a recording rule, for an expression that several alerts use.
type record struct {
	name, expr string
}

// rule is an alerting rule, with tests that show it firing and not firing.
type rule struct {
	alert       string
	expr        string
	wait        string // how long the expression must hold
	severity    alerts.Severity
	summary     string
	description string
	dashboard   string // uid of the dashboard that shows more
	tests       []ruleTest
}

// annotations returns the annotations of the alert.
func (r rule) annotations(grafana string) ruleAnnotations {
	return ruleAnnotations{
		Summary: r.summary, Description: r.description, Runbook: alerts.Runbook(r.alert), Dashboard: r.dashboardURL(grafana, "{{ $labels.policy | urlquery }}"),
	}
}

// dashboardURL returns the address of the dashboard that shows more, with the policy selected if it is a policy's
// dashboard.
func (r rule) dashboardURL(grafana, policy string) string {
	if grafana == "" {
		return ""
	}
	address := strings.TrimSuffix(grafana, "/") + "/d/" + cmp.Or(r.dashboard, alerts.ServiceDashboard)
	if r.dashboard == alerts.PolicyDashboard {
		address += "?var-policy=" + policy
	}
	return address
}

// ruleTest feeds series with one sample per minute, and lists the alerts of the rule that must fire at a given time.
type ruleTest struct {
	name   string
	series []inputSeries
	at     string
	fires  []expectedAlert // empty if the rule must not fire
}

// The file formats of Prometheus and promtool, as far as they are used here.
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
		Dashboard   string `yaml:"dashboard_url,omitempty"`
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

// rulesFile puts everything into one group, the recording rules first. Prometheus evaluates the rules of a group one
// after the other, but groups in no order: alerts in another group would see either the present recording or the one
// before, at random.
func rulesFile(records []record, rules []rule, grafana string) rulesDocument {
	group := ruleGroup{Name: "rewardwatch"}
	for _, r := range records {
		group.Rules = append(group.Rules, recordRule{Record: r.name, Expr: r.expr})
	}
	for _, r := range rules {
		group.Rules = append(group.Rules, alertRule{
			Alert: r.alert, Expr: r.expr, For: r.wait,
			Labels:      map[string]string{"severity": string(r.severity)},
			Annotations: r.annotations(grafana),
		})
	}
	return rulesDocument{Groups: []ruleGroup{group}}
}

func rulesTestFile(rules []rule, grafana string) testDocument {
	doc := testDocument{RuleFiles: []string{RulesFile}, EvaluationInterval: "1m"}
	for _, r := range rules {
		for _, t := range r.tests {
			expect := make([]expectedAlert, len(t.fires))
			for i, e := range t.fires {
				expect[i] = e.with("severity", string(r.severity))
				expect[i].Annotations.Runbook = alerts.Runbook(r.alert)
				expect[i].Annotations.Dashboard = r.dashboardURL(grafana, e.Labels["policy"])
			}
			doc.Tests = append(doc.Tests, testCase{
				Name: r.alert + ": " + t.name, Every: "1m", Series: t.series,
				Alerts: []alertRuleTest{{At: t.at, Alert: r.alert, Expect: expect}},
			})
		}
	}
	return doc
}

// with returns a copy with one more label.
func (e expectedAlert) with(name, value string) expectedAlert {
	labels := map[string]string{name: value}
	for n, v := range e.Labels {
		labels[n] = v
	}
	e.Labels = labels
	return e
}
