package dashboards

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts/rules"
)

// exportedMetrics returns the names of all metrics of Rewardwatch in its source, with the file of each: the string
// constants named Metric... or metric... .
func exportedMetrics(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != ".." && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		return metricsOfFile(path, found)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 40 {
		t.Fatalf("found the names of only %d metrics", len(found))
	}
	return found
}

func metricsOfFile(path string, found map[string]string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if i >= len(spec.Values) || !strings.HasPrefix(strings.ToLower(name.Name), "metric") {
				continue
			}
			literal, ok := spec.Values[i].(*ast.BasicLit)
			if !ok {
				continue
			}
			if text, err := strconv.Unquote(literal.Value); err == nil && strings.HasPrefix(text, "rewardwatch_") {
				found[text] = path
			}
		}
		return true
	})
	return nil
}

// Every alert has a runbook, every runbook has an alert, and alerts link to existing dashboards.
func TestAlertsLeadSomewhere(t *testing.T) {
	dir := t.TempDir()
	if err := rules.Write(dir, rules.Options{GrafanaURL: "https://grafana.example"}); err != nil {
		t.Fatal(err)
	}
	text := string(read(t, filepath.Join(dir, rules.RulesFile)))
	var named, described []string
	for _, found := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(text, -1) {
		named = append(named, found[1])
	}
	for _, found := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(read(t, "../docs/runbooks.md")), -1) {
		described = append(described, found[1])
	}
	slices.Sort(named)
	slices.Sort(described)
	if named = slices.Compact(named); !slices.Equal(named, described) {
		t.Errorf("there are the alerts %v, and runbooks of %v", named, described)
	}
	leads := regexp.MustCompile(`dashboard_url: "?https://grafana[.]example/d/([\w-]+)`).FindAllStringSubmatch(text, -1)
	if alerts := strings.Count(text, "- alert: "); len(leads) != alerts {
		t.Errorf("%d of %d alerts lead to a dashboard", len(leads), alerts)
	}
	for _, found := range leads {
		if !slices.ContainsFunc(pages(), func(p page) bool { return p.uid == found[1] }) {
			t.Errorf("an alert leads to the dashboard %s, which does not exist", found[1])
		}
	}
}

// The table of docs/metrics.md has a row for every exported metric and no other rows, and its type fits the name.
func TestEveryMetricIsInTheTable(t *testing.T) {
	exist := exportedMetrics(t)
	row := regexp.MustCompile("(?m)^\\| `(rewardwatch_\\w+)` \\| (\\w+) \\| ([^|]+) \\| ([^|]+) \\|$")
	documented := map[string]bool{}
	for _, found := range row.FindAllStringSubmatch(string(read(t, "../docs/metrics.md")), -1) {
		name, kind := found[1], found[2]
		for _, word := range []string{"counter", "gauge", "histogram", "summary"} { // promtool check metrics refuses them
			if slices.Contains(strings.Split(name, "_"), word) {
				t.Errorf("%s has a type in its name", name)
			}
		}
		if labels := found[3]; strings.Contains(labels, "`quantile`") || strings.Contains(labels, "`le`") {
			t.Errorf("%s has a label that is reserved for summaries or histograms", name)
		}
		if documented[name] {
			t.Errorf("%s stands in the table twice", name)
		}
		documented[name] = true
		if _, ok := exist[name]; !ok {
			t.Errorf("%s stands in the table, and nothing exports it", name)
		}
		if !slices.Contains([]string{"counter", "gauge", "histogram", "summary"}, kind) || (kind == "counter") != strings.HasSuffix(name, "_total") {
			t.Errorf("%s cannot be a %s by its name", name, kind)
		}
	}
	for name, path := range exist {
		if !documented[name] {
			t.Errorf("%s (%s) is missing from the table", name, path)
		}
	}
}

// Pages only name metrics that are exported.
func TestDocsNameMetricsThatExist(t *testing.T) {
	exist, named := exportedMetrics(t), 0
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../README.md") {
		for _, name := range regexp.MustCompile(`\brewardwatch_\w+`).FindAllString(string(read(t, page)), -1) {
			named++
			if _, ok := exist[name]; !ok && name != "rewardwatch_units_delayed" { // a recording rule
				t.Errorf("%s names %s, and nothing exports it", page, name)
			}
		}
	}
	if named < 100 {
		t.Errorf("found %d names", named)
	}
}
