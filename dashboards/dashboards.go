// Package dashboards writes the Grafana dashboards of Rewardwatch: one of the whole fleet, one of a single policy. They
// read nothing but the metrics that the other packages export, from any Prometheus that scrapes them.
package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Names of the files that Write makes.
const (
	FleetFile  = "fleet.json"
	PolicyFile = "policy.json"
)

// The uids are fixed, so that the dashboards can link to each other and a later version replaces an earlier one.
const (
	fleetUID  = "rewardwatch-fleet"
	policyUID = "rewardwatch-policy"
)

// Options say what the dashboards are made for.
type Options struct {
	// GroupBy lists the labels that tell the groups of a policy apart, as metrics spell them (label_region for
	// labels.region). Each becomes a variable. A policy without one of them is matched by "All".
	GroupBy []string
}

// DefaultOptions are for policies that are grouped by env, as they are unless configured otherwise.
func DefaultOptions() Options {
	return Options{GroupBy: []string{"env"}}
}

// Write makes the directory if need be and writes FleetFile and PolicyFile into it. The same options give the same
// bytes.
func Write(dir string, opts Options) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the directory of the dashboards: %w", err)
	}
	for _, d := range []struct {
		file    string
		builder *dashboard.DashboardBuilder
	}{
		{FleetFile, fleet(opts)},
		{PolicyFile, policy(opts)},
	} {
		if err := write(filepath.Join(dir, d.file), d.builder); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, builder cog.Builder[dashboard.Dashboard]) error {
	built, err := builder.Build()
	if err != nil {
		return fmt.Errorf("building %s: %w", filepath.Base(path), err)
	}
	numberPanels(built.Panels)
	text, err := json.MarshalIndent(built, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", filepath.Base(path), err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing a dashboard: %w", err)
	}
	return nil
}

// numberPanels gives every panel an id of its own: Grafana would number them at each load, and links to a panel would
// not last.
func numberPanels(panels []dashboard.PanelOrRowPanel) {
	for i := range panels {
		id := uint32(i + 1)
		if panels[i].Panel != nil {
			panels[i].Panel.Id = &id
			continue
		}
		panels[i].RowPanel.Id = id
	}
}
