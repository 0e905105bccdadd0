package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows returns which other packages each package may import. The packages of the binary, in home, may import all
// packages that are not in home.
func arrows() map[string][]string {
	return map[string][]string{
		"ingest":             nil,
		"ingest/assemble":    {"ingest", "ingest/intern", "ingest/saved"},
		"ingest/checkpoint":  {"ingest", "ingest/datadir", "ingest/kafkalog", "ingest/saved"},
		"ingest/consumer":    {"ingest", "ingest/deadletter", "ingest/fetch", "ingest/locallog"}, // and no format: it is passed one
		"ingest/datadir":     nil,
		"ingest/deadletter":  {"ingest", "ingest/fetch"},
		"ingest/feedback":    {"ingest", "ingest/assemble", "ingest/saved"},
		"ingest/fetch":       {"ingest"},
		"ingest/certtest":    nil,        // only for tests
		"ingest/httpclient":  {"ingest"}, // for its rules for files with secrets
		"ingest/ingesttest":  {"ingest", "ingest/deadletter"},
		"ingest/kafkalog":    {"ingest", "ingest/fetch"},
		"ingest/locallog":    {"ingest", "ingest/datadir"},
		"ingest/order":       {"ingest"},
		"ingest/packed":      {"ingest"},
		"ingest/receive":     {"ingest", "ingest/kafkalog", "ingest/locallog"},
		"ingest/recording":   {"ingest", "ingest/avro", "ingest/fetch", "ingest/locallog", "ingest/receive", "ingest/telemetry"}, // the content of a file determines its format
		"ingest/repartition": {"ingest", "ingest/deadletter", "ingest/fetch", "ingest/kafkalog", "ingest/receive", "ingest/saved", "ingest/telemetry"},
		"ingest/saved":       {"ingest"}, // for the wire forms of its types
		"ingest/unitlog":     {"ingest", "ingest/locallog", "ingest/order", "ingest/saved"},

		// The formats of messages.
		"ingest/format":               {"ingest", "ingest/avro", "ingest/cloudevents", "ingest/mapping", "ingest/otlp", "ingest/protobuf", "ingest/registry", "ingest/telemetry"},
		"ingest/intern":               nil,
		"ingest/jsontext":             nil,
		"ingest/nearest":              nil,
		"ingest/mapping":              {"ingest/nearest"},
		"ingest/mapping/propose":      {"ingest", "ingest/mapping"},
		"ingest/protobuf":             {"ingest", "ingest/intern", "ingest/jsontext"},
		"ingest/protobuf/generate":    nil,
		"ingest/protobuf/telemetrypb": nil,
		"ingest/telemetry":            {"ingest", "ingest/intern", "ingest/jsontext", "ingest/mapping"},
		"ingest/avro":                 {"ingest", "ingest/jsontext"},
		"ingest/cloudevents":          {"ingest", "ingest/jsontext"},
		"ingest/otlp":                 {"ingest", "ingest/jsontext"},
		"ingest/registry":             {"ingest"}, // for its rules for files with secrets
		"ingest/emitters/go":          nil,        // an example

		"detectors":         {"detectors/kernel"},
		"detectors/kernel":  nil,
		"detectors/kstable": {"detectors"}, // generates a table
		"detectors/bank": {
			"detectors", "detectors/actions", "detectors/baseline", "detectors/battery", "detectors/blocks", "detectors/budget", "detectors/capacity", "detectors/factor",
			"detectors/fault", "detectors/finding", "detectors/gate", "detectors/held", "detectors/history", "detectors/hours", "detectors/offpolicy", "detectors/progress", "detectors/raters", "detectors/reach", "detectors/season", "detectors/signals", "detectors/strata", "detectors/stream", "detectors/trail",
			"detectors/versions", "detectors/watch", "ingest", "ingest/packed", "ingest/saved",
		},
		"detectors/actions":             {"detectors", "detectors/divergence", "detectors/finding", "detectors/signals", "detectors/stream", "detectors/trail", "detectors/watch", "ingest", "ingest/saved"},
		"detectors/capacity":            {"ingest"},
		"detectors/baseline":            {"detectors", "detectors/factor", "detectors/lesson", "detectors/offpolicy", "detectors/signals", "detectors/strata", "detectors/stream", "detectors/watch", "ingest", "ingest/saved"},
		"detectors/battery":             {"detectors", "detectors/blocks", "detectors/factor", "detectors/fault", "detectors/finding", "detectors/signals", "detectors/stream", "ingest", "ingest/saved"},
		"detectors/blocks":              {"detectors/signals", "ingest", "ingest/saved"},
		"detectors/certificate":         {"detectors"},
		"detectors/divergence":          nil,
		"detectors/budget":              {"detectors", "detectors/signals", "detectors/stream", "detectors/watch"},
		"detectors/held":                {"detectors/budget", "detectors/finding", "ingest/packed"},
		"detectors/factor":              {"detectors", "detectors/kernel", "ingest", "ingest/saved"},
		"detectors/fault":               {"detectors", "ingest", "ingest/saved"},
		"detectors/faulttest":           {"ingest"},
		"detectors/finding":             {"detectors", "detectors/factor", "detectors/fault", "detectors/mix", "detectors/progress", "detectors/signals", "ingest", "ingest/saved"},
		"detectors/gate":                {"detectors", "detectors/battery", "detectors/finding", "detectors/offpolicy", "detectors/signals", "detectors/stream", "detectors/watch", "ingest", "ingest/saved"},
		"detectors/guard":               {"detectors/finding", "detectors/versions", "detectors/watch", "ingest", "ingest/saved"},
		"detectors/history":             {"detectors/progress", "ingest", "ingest/saved"},
		"detectors/hours":               {"detectors", "detectors/season", "detectors/signals", "detectors/stream"},
		"detectors/lesson":              nil,
		"detectors/measure":             {"detectors", "detectors/battery", "detectors/signals", "detectors/stream", "detectors/watch", "ingest"},
		"detectors/metrics":             {"detectors/finding", "detectors/guard"}, // only reads summaries
		"detectors/mix":                 nil,
		"detectors/progress":            nil,
		"detectors/offpolicy":           {"detectors/finding", "ingest", "ingest/saved"},
		"detectors/rarity":              {"detectors"},
		"detectors/reach":               {"detectors", "detectors/finding", "detectors/kernel", "detectors/rarity", "detectors/signals", "detectors/stream"},
		"detectors/signals":             nil,
		"detectors/season":              {"detectors"},
		"detectors/strata":              {"detectors/mix", "detectors/signals", "detectors/stream", "ingest", "ingest/saved"},
		"detectors/stream":              {"detectors", "detectors/certificate", "detectors/factor", "detectors/fault", "detectors/finding", "detectors/lesson", "detectors/rarity", "detectors/season", "detectors/signals", "detectors/watch", "ingest", "ingest/saved"},
		"detectors/raters":              {"ingest"},
		"detectors/trail":               {"detectors", "detectors/finding", "detectors/stream", "ingest", "ingest/saved"},
		"detectors/versions":            {"detectors/finding", "ingest", "ingest/saved"},
		"detectors/watch":               {"detectors", "detectors/signals", "ingest"},
		"alerts":                        {"alerts/annotation", "alerts/redact", "detectors/factor", "detectors/fault", "detectors/finding", "detectors/metrics", "detectors/mix", "detectors/signals", "ingest", "ingest/datadir", "ingest/httpclient", "ingest/saved"},
		"alerts/rules":                  {"alerts", "cmd/rewardwatch/names", "detectors/fault", "detectors/finding", "detectors/metrics", "ingest", "ingest/assemble", "ingest/feedback", "ingest/locallog", "retrain"}, // for names of metrics
		"alerts/alarmmetrics":           {"alerts", "detectors/metrics", "ingest"},
		"alerts/annotation":             nil,
		"alerts/redact":                 nil,
		"alerts/tripping":               {"alerts", "detectors/guard"},
		"cmd/rewardwatch/names":         nil,
		"retrain":                       {"alerts", "detectors/finding", "detectors/signals", "ingest", "retrain/command", "retrain/kubejob", "retrain/ledger", "retrain/outcome", "retrain/recipe", "retrain/target", "retrain/training", "retrain/yamlfile"},
		"retrain/command":               {"ingest/datadir", "retrain/training"},
		"retrain/kubejob":               {"ingest", "retrain/training", "retrain/yamlfile"}, // for its rules for files with secrets
		"retrain/experience":            {"ingest", "ingest/assemble", "ingest/recording"},
		"retrain/expectation":           {"detectors", "ingest", "ingest/saved"},
		"retrain/ledger":                {"alerts", "detectors/finding", "ingest", "retrain/recipe", "retrain/target"}, // for orders and the answers of targets
		"retrain/ledgertest":            {"deploy/deploytest"},
		"retrain/outcome":               {"detectors/bank", "detectors/finding", "ingest", "ingest/saved", "retrain/expectation", "retrain/ledger", "retrain/recipe"},                                                                                                                                                                                                                                                                                                                          // reads units and baselines
		"retrain/pipeline":              {"retrain/apiurl", "retrain/pipeline/keep", "retrain/pipeline/keywords", "retrain/pipeline/machines", "retrain/pipeline/pattern", "retrain/pipeline/pins", "retrain/pipeline/pytext", "retrain/pipeline/quote", "retrain/pipeline/schedule", "retrain/pipeline/secrets", "retrain/pipeline/strict", "retrain/pipeline/traits", "retrain/pipeline/verdicts", "retrain/pipeline/wired", "retrain/pipeline/words", "retrain/recipe", "retrain/yamlfile"}, // generates files; knows nothing of the service
		"retrain/pipeline/propose":      {"retrain/pipeline/hydra", "retrain/pipeline/keywords", "retrain/pipeline/literals", "retrain/pipeline/lookup", "retrain/pipeline/pattern", "retrain/pipeline/pins", "retrain/pipeline/programs", "retrain/pipeline/pytext", "retrain/pipeline/quote", "retrain/pipeline/reading", "retrain/pipeline/strict", "retrain/pipeline/traits"},
		"retrain/pipeline/commandline":  {"retrain/pipeline/modules"},
		"retrain/pipeline/keep":         {"retrain/pipeline/secrets"},
		"retrain/pipeline/keywords":     {"ingest/nearest", "retrain/pipeline/pins", "retrain/pipeline/pytext", "retrain/pipeline/quote", "retrain/yamlfile"},
		"retrain/pipeline/machines":     {"retrain/pipeline/strict"},
		"retrain/pipeline/placeholders": {"retrain/pipeline/modules", "retrain/pipeline/pattern", "retrain/pipeline/pytext", "retrain/pipeline/traits"},
		"retrain/pipeline/oneline":      {"retrain/pipeline/pytext"},
		"retrain/pipeline/words":        {"ingest/nearest", "retrain/pipeline/oneline"},
		"retrain/apiurl":                nil,
		"retrain/pipeline/modules":      {"retrain/pipeline/pattern", "retrain/pipeline/pytext"},
		"retrain/pipeline/pins":         {"ingest/nearest", "retrain/pipeline/pattern", "retrain/pipeline/traits"},
		"retrain/pipeline/literals":     {"retrain/pipeline/pattern", "retrain/yamlfile"}, // settings
		"retrain/pipeline/hydra":        {"retrain/pipeline/literals", "retrain/pipeline/modules", "retrain/pipeline/pattern", "retrain/pipeline/pytext"},
		"retrain/pipeline/lookup":       {"retrain/pipeline/commandline", "retrain/pipeline/hydra", "retrain/pipeline/literals", "retrain/pipeline/modules", "retrain/pipeline/pattern", "retrain/pipeline/pytext"},
		"retrain/pipeline/programs":     {"retrain/pipeline/commandline", "retrain/pipeline/headless", "retrain/pipeline/hydra", "retrain/pipeline/literals", "retrain/pipeline/lookup", "retrain/pipeline/modules", "retrain/pipeline/pattern", "retrain/pipeline/placeholders", "retrain/pipeline/pytext", "retrain/pipeline/saves", "retrain/pipeline/strict", "retrain/pipeline/traits"},
		"retrain/pipeline/pattern":      nil,
		"retrain/pipeline/quote":        {"retrain/yamlfile"},
		"retrain/pipeline/schedule":     nil,
		"retrain/pipeline/secrets":      nil,
		"retrain/pipeline/strict":       {"retrain/pipeline/pytext", "retrain/yamlfile"},
		"retrain/pipeline/verdicts":     {"detectors", "detectors/gate"}, // for the amount of data that a gate needs
		"retrain/pipeline/wired":        {},
		"retrain/pipeline/pytext":       {"retrain/pipeline/literals", "retrain/pipeline/pattern"},
		"retrain/pipeline/reading":      {"retrain/pipeline/pins", "retrain/pipeline/programs"},
		"retrain/pipeline/headless":     {"retrain/pipeline/pattern"},
		"retrain/pipeline/saves":        {"retrain/pipeline/modules", "retrain/pipeline/pattern", "retrain/pipeline/pytext", "retrain/pipeline/traits"},
		"retrain/pipeline/traits":       {"ingest/nearest", "retrain/pipeline/pattern"},
		"retrain/pipeline/fill":         {"retrain/pipeline", "retrain/pipeline/keep", "retrain/pipeline/pytext", "retrain/pipeline/secrets", "retrain/yamlfile"},
		"retrain/recipe":                {"alerts", "detectors", "detectors/finding", "detectors/signals", "ingest", "retrain/expectation", "retrain/yamlfile"}, // orders include incidents
		"retrain/retraintest":           {"alerts", "detectors/finding", "ingest"},
		"retrain/target":                {"ingest", "ingest/httpclient", "ingest/kafkalog", "retrain/apiurl", "retrain/command", "retrain/kubejob", "retrain/yamlfile"}, // Kafka; commands; Jobs
		"retrain/training":              nil,
		"retrain/yamlfile":              {"ingest/nearest"},
		"deploy/deploytest":             nil,
		"deploy/picturetest":            nil,
		"dashboards":                    {"alerts", "cmd/rewardwatch/names", "detectors/finding", "detectors/metrics", "detectors/progress", "ingest", "ingest/assemble", "retrain", "retrain/ledger"}, // for names of metrics

		"cmd/rewardwatch-demo-broker": nil, // the other binary
	}
}

// home is the directory of the binary's packages.
const home = "cmd/rewardwatch/internal/"

// inside returns which packages of the binary each of them may import. Tests and their helpers may import all.
func inside() map[string][]string {
	return map[string][]string{
		"words":    nil,
		"wire":     {"words"},
		"terminal": {"wire", "words"},
		"client":   {"terminal", "wire"},
		"pace":     nil,
		"announce": {"wire"},
		"engine":   {"intake", "pace", "tenant"},
		"intake":   {"tenant"},
		"tenant":   nil,
		"cluster":  {"engine"},
		"console":  {"access", "console/plots", "session", "words"},

		"console/plots": {"words"},

		"access":    nil,
		"session":   {"access"},
		"signin":    {"access", "session", "words"},
		"audit":     nil,
		"secrets":   nil,
		"webconfig": nil,
		"api":       {"access", "audit", "cluster", "console", "console/plots", "engine", "session", "signin", "tenant", "webconfig", "wire", "words"},
		"config":    {"access", "announce", "api", "cluster", "engine", "secrets", "signin", "tenant", "webconfig"},
		"app":       {"announce", "api", "audit", "cluster", "config", "console", "console/plots", "engine", "secrets"},
		"sample":    {"engine", "terminal"},
		"inspect":   {"config", "engine", "sample", "terminal", "wire", "words"},
		"replay":    {"config", "console", "console/plots", "engine", "terminal", "wire", "words"},
		"pipelines": {"config", "terminal"},
		"calibrate": {"config", "engine", "replay", "terminal", "wire", "words"},
		"demo":      {"app", "config", "engine", "replay", "terminal"},
		"cli": {
			"api", "app", "calibrate", "client", "config", "demo", "engine", "inspect", "pipelines", "replay", "sample", "terminal", "wire", "words",
		},
		"manpages": {"cli"},
	}
}

// allows reports whether a package may import another one.
func allows(room, other string) (may, known bool) {
	if in, at := strings.CutPrefix(room, home); at {
		if strings.HasSuffix(in, "test") || in == "testkit" || strings.HasSuffix(in, "/e2e") {
			return true, true
		}
		list, known := inside()[in]
		to, at := strings.CutPrefix(other, home)
		return !at || slices.Contains(list, to), known
	}
	list, known := arrows()[room]
	return slices.Contains(list, other), known
}

func TestRoomsImportAlongTheArrows(t *testing.T) {
	const module = "github.com/rewardwatch/rewardwatch/"
	seen := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		room, err := filepath.Rel("../..", filepath.Dir(path))
		if err != nil || room == "cmd/rewardwatch" || room == "cmd/rewardwatch/e2e" {
			return err
		}
		if _, known := allows(room, ""); !known {
			t.Errorf("%s is a room without arrows: say in arrows what it may import", room)
			return nil
		}
		seen[room] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			other, ours := strings.CutPrefix(name, module)
			if may, _ := allows(room, other); ours && !may {
				t.Errorf("%s imports %s", path, other)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rooms := slices.Collect(maps.Keys(arrows()))
	for room := range inside() {
		rooms = append(rooms, home+room)
	}
	for _, room := range rooms {
		if !seen[room] {
			t.Errorf("%s has arrows but no Go files", room)
		}
	}
}
