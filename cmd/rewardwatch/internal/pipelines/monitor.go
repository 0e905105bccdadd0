package pipelines

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts/rules"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/dashboards"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keep"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// The generated configuration of Rewardwatch, its part for other keys, and the directories of the files that Prometheus
// and Grafana load.
const (
	configFile   = "pipeline/rewardwatch.yml"
	configPart   = "more"
	rulesDir     = "pipeline/rules"
	dashboardDir = "pipeline/dashboards"
)

// in returns the options with the filters that need the rest of this program. dir is the root of the repository, or ""
// if there is none.
func in(dir string, o pipeline.Options) pipeline.Options {
	o.Filters = []pipeline.Filter{{Name: "monitor", Run: func(w *pipeline.Work) string { return monitor(w, dir) }}}
	return o
}

// monitor checks the generated configuration as the service does, and adds the matching Prometheus rules and Grafana
// dashboards. It takes into account the lines that a person has added to the configuration.
func monitor(w *pipeline.Work, dir string) string {
	i := slices.IndexFunc(w.Artefacts, func(a pipeline.Artefact) bool { return a.Path == configFile })
	if i < 0 {
		return "no configuration"
	}
	c := merge(w.Artefacts[i].Text, dir)
	cfg, err := config.ParseConfig(configFile, []byte(c.text), (*config.Config).CheckAlone)
	if bad, ok := errors.AsType[*yamlfile.Error](err); ok {
		for _, p := range bad.Problems {
			w.Problems = append(w.Problems, c.placed(&w.Artefacts[i], p))
		}
		return "the configuration contains errors"
	}
	if err == nil {
		err = addWatching(w, cfg)
	}
	if err != nil {
		w.Problems = append(w.Problems, yamlfile.Problem{Place: yamlfile.Place{File: configFile, Line: 1, Column: 1}, Message: err.Error()})
	}
	return fmt.Sprintf("%d generated files", len(w.Artefacts))
}

// addWatching adds the rules and dashboards of a configuration.
func addWatching(w *pipeline.Work, cfg *config.Config) error {
	groups := cfg.Settings().GroupLabels()
	alerting, err := rules.Files(rules.Options{Push: len(cfg.Alerts.Alertmanager.URLs) > 0, GroupLabels: groups, GrafanaURL: cfg.Alerts.GrafanaURL})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(alerting)) {
		w.Add(path.Join(rulesDir, name), "# "+pipeline.Written+"\n"+string(alerting[name]))
	}
	drawn, err := dashboards.Files(dashboards.Options{GroupBy: groups}, pipeline.Written)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(drawn)) {
		w.Add(path.Join(dashboardDir, name), string(drawn[name]))
	}
	return nil
}

// merged is a generated configuration that includes the lines that a person has added to the existing file.
type merged struct {
	text        string
	file        string // the existing file
	first, last int    // line numbers in text of the added lines
	shift       int    // from a line number in text to one in file
}

func merge(text, dir string) merged {
	m := merged{text: text}
	if dir == "" {
		return m
	}
	m.file = filepath.Join(dir, filepath.FromSlash(configFile))
	before, err := yamlfile.Load(m.file)
	if err != nil {
		return m // the file is new, or Changes reports the error
	}
	body, old, err := keep.Part(string(before), configPart)
	if err != nil || old == 0 {
		return m
	}
	own, mark, err := keep.Part(text, configPart)
	if err != nil || mark == 0 {
		return m
	}
	if with, err := keep.WithPart(text, configPart, body); err == nil && own == "" {
		m.text, m.shift = with, old-mark
		m.first, m.last = mark+1, mark+strings.Count(body, "\n")
	}
	return m
}

// placed returns a problem of the configuration with the position that a person can change: the added line, or the
// value in the file that generated the line.
func (m merged) placed(a *pipeline.Artefact, p yamlfile.Problem) yamlfile.Problem {
	if p.Line >= m.first && p.Line <= m.last {
		p.File = m.file
		p.Line += m.shift
		return p
	}
	for _, o := range a.Origins {
		if o.Line == p.Line && o.Place.Line > 0 {
			_, ofGuards, isOfGuards := strings.Cut(p.Path, ".guards.")
			p.Place = o.Place
			if p.Path = o.Path; isOfGuards && !strings.HasPrefix(o.Path, "guards."+ofGuards+".") { // which may be of a key that is missing
				p.Path = "guards." + ofGuards
			}
			break
		}
	}
	return p
}
