// Package dashboards writes the Grafana dashboards of Rewardwatch, for the whole fleet, for a single policy, for
// retraining, and for the service itself. They use only the metrics that the other packages export, from any Prometheus
// that scrapes them.
package dashboards

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// page is one dashboard. The uids are fixed, so that the dashboards can link to each other and a later version replaces
// an earlier one.
type page struct {
	title, uid string
	build      func(Options) *dashboard.DashboardBuilder
}

const (
	fleetUID      = "rewardwatch-fleet"
	policyUID     = "rewardwatch-policy"
	retrainingUID = "rewardwatch-retraining"
	serviceUID    = "rewardwatch-service"
)

func pages() []page {
	return []page{
		{"Fleet", fleetUID, fleet}, {"Policy", policyUID, policy}, {"Retraining", retrainingUID, retraining}, {"Service", serviceUID, service},
	}
}

// file returns the name of the file of a dashboard.
func (p page) file() string { return strings.ToLower(p.title) + ".json" }

// ConfigMapFile is the name of the file with all dashboards as a Kubernetes ConfigMap, which the sidecar of Grafana's
// Helm chart finds by its label.
const ConfigMapFile = "configmap.yaml"

// Options adapts the dashboards to an installation.
type Options struct {
	// GroupBy lists the labels that distinguish the groups of a policy, as metrics spell them (label_region for
	// labels.region). Each becomes a variable. "All" also matches policies without the label.
	GroupBy []string
}

// DefaultOptions returns the options for policies that are grouped by env, which is the default.
func DefaultOptions() Options {
	return Options{GroupBy: []string{"env"}}
}

// Write writes every dashboard and ConfigMapFile into a directory, which it creates if necessary, and returns their
// paths. The same options produce the same bytes.
func Write(dir string, opts Options) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the directory for dashboards: %w", err)
	}
	files, err := Files(opts, "")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range pages() {
		names = append(names, p.file())
	}
	files[ConfigMapFile] = configMap(names, files)
	names = append(names, ConfigMapFile)
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
		if err := os.WriteFile(names[i], files[name], 0o644); err != nil {
			return nil, fmt.Errorf("write a dashboard: %w", err)
		}
	}
	return names, nil
}

// Files returns the JSON of every dashboard by its file name, with a remark at the end of each description.
func Files(opts Options, remark string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, p := range pages() {
		text, err := encode(p.build(opts), remark)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.file(), err)
		}
		files[p.file()] = text
	}
	return files, nil
}

func encode(builder cog.Builder[dashboard.Dashboard], remark string) ([]byte, error) {
	built, err := builder.Build()
	if err != nil {
		return nil, fmt.Errorf("build the dashboard: %w", err)
	}
	if built.Description != nil && remark != "" {
		*built.Description += " " + remark
	}
	layOut(built.Panels)
	text, err := json.MarshalIndent(built, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the dashboard: %w", err)
	}
	return append(text, '\n'), nil
}

// configMap writes the files as block scalars, which hold JSON unchanged.
func configMap(names []string, files map[string][]byte) []byte {
	var out bytes.Buffer
	out.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: rewardwatch-dashboards\n  labels:\n    grafana_dashboard: \"1\"\ndata:\n")
	for _, name := range names {
		fmt.Fprintf(&out, "  rewardwatch-%s: |\n", name)
		for line := range bytes.Lines(files[name]) {
			fmt.Fprintf(&out, "    %s", line)
		}
	}
	return out.Bytes()
}

// layOut assigns an id and a position to every panel: from left to right, starting a new line when one is full. As in
// files that Grafana saves, the panels of a closed row have positions below it, and panels after the row have the
// positions that they have while it is closed. Without ids, Grafana would number panels at each load, and links to a
// panel would break.
func layOut(panels []dashboard.PanelOrRowPanel) {
	var l flow
	for i := range panels {
		if panels[i].Panel != nil {
			l.place(panels[i].Panel)
			continue
		}
		row := panels[i].RowPanel
		l.breakLine()
		l.id++
		row.Id = l.id
		row.GridPos = &dashboard.GridPos{Y: l.y, W: full, H: 1}
		l.y++
		inside := flow{y: l.y, id: l.id}
		for j := range row.Panels {
			inside.place(&row.Panels[j])
		}
		l.id = inside.id
	}
}

// flow places panels like words in lines of text.
type flow struct {
	x, y, height uint32
	id           uint32
}

func (l *flow) place(p *dashboard.Panel) {
	w, h := p.GridPos.W, p.GridPos.H
	if l.x+w > full {
		l.breakLine()
	}
	l.id++
	p.Id = cog.ToPtr(l.id)
	p.GridPos = &dashboard.GridPos{X: l.x, Y: l.y, W: w, H: h}
	l.x, l.height = l.x+w, max(l.height, h)
}

func (l *flow) breakLine() { l.x, l.y, l.height = 0, l.y+l.height, 0 }
