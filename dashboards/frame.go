package dashboards

import (
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
)

// frame returns the common part of all dashboards: the variables datasource, job and policy and one for each group
// label, the annotations, and the links to the other dashboards.
func frame(title, description, uid string, s scope, policy *dashboard.QueryVariableBuilder) *dashboard.DashboardBuilder {
	d := dashboard.NewDashboardBuilder(title).
		Description(description).
		Uid(uid).
		Tags([]string{"rewardwatch"}).
		Timezone("browser").
		Time("now-6h", "now").
		Refresh("30s").
		Readonly(). // the next version would overwrite changes made in Grafana
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(everything(variable("job", "Job", "label_values("+names.MetricBuildInfo+", job)")).AllValue(".+")).
		WithVariable(policy)
	for _, label := range s.labels {
		d.WithVariable(groupVariable(s, label))
	}
	d.WithVariable(variable("console", "Console", "label_values("+names.MetricConsole+`{job=~"$job"}, url)`).Hide(dashboard.VariableHideHideVariable))
	for _, other := range pages() {
		if other.uid != uid {
			d.Link(linkTo(other))
		}
	}
	return d.Annotation(onsetAnnotation(s)).Annotation(versionAnnotation(s))
}

// linkTo returns a link to another dashboard with the current selection. The link to the dashboard of a policy omits
// the policy, because that dashboard shows exactly one and has no "All".
func linkTo(other page) *dashboard.DashboardLinkBuilder {
	link := dashboard.NewDashboardLinkBuilder(other.title).Type(dashboard.DashboardLinkTypeLink).KeepTime(true)
	if other.uid == policyUID {
		return link.Url("/d/" + other.uid + "?var-datasource=${datasource}&${job:queryparam}")
	}
	return link.Url("/d/" + other.uid).IncludeVars(true)
}

func policyVariable() *dashboard.QueryVariableBuilder {
	return variable("policy", "Policy", "label_values("+metrics.MetricStreamState+`{job=~"$job"}, policy)`)
}

func groupVariable(s scope, label string) *dashboard.QueryVariableBuilder {
	return everything(variable(label, labelTitle(label), "label_values("+s.policies(metrics.MetricStreamState)+", "+label+")"))
}

// signalVariable offers the numeric signals. Categorical actions have their own row.
func signalVariable() *dashboard.QueryVariableBuilder {
	return variable("signal", "Signal", "label_values("+metrics.MetricSignalMean+`{job=~"$job",policy="$policy"}, signal)`).
		Current(dashboard.VariableOption{Text: text("return"), Value: text("return")})
}

func variable(name, label, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).
		Label(label).
		Datasource(datasource()).
		Query(dashboard.StringOrMap{String: cog.ToPtr(query)}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortNaturalAsc)
}

// everything adds "All", with a pattern that also matches series without the label.
func everything(v *dashboard.QueryVariableBuilder) *dashboard.QueryVariableBuilder {
	return v.Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{Text: text("All"), Value: text("$__all")})
}

func text(s string) dashboard.StringOrArrayOfString {
	return dashboard.StringOrArrayOfString{String: &s}
}

// onsetAnnotation marks the estimated start of the drift of each incident.
func onsetAnnotation(s scope) *dashboard.AnnotationQueryBuilder {
	return atTime("Drift onsets", red, s, alerts.MetricIncidentOnset, "incident").
		TitleFormat("Drift onset").
		TextFormat(s.legend() + ": incident {{incident}}").
		TagKeys("policy")
}

// versionAnnotation marks when the first unit of a version ended.
func versionAnnotation(s scope) *dashboard.AnnotationQueryBuilder {
	return atTime("Version changes", blue, s, metrics.MetricVersionSince, "policy_version", "env_version", "reward_version").
		TitleFormat("New version").
		TextFormat(s.legend() + ": policy {{policy_version}}, environment {{env_version}}, reward function {{reward_version}}").
		TagKeys("policy")
}

// atTime marks the times that the values of a metric of groups denote, in Unix seconds. It skips 0, which means that
// the time is unknown.
func atTime(name, color string, s scope, metric string, more ...string) *dashboard.AnnotationQueryBuilder {
	return dashboard.NewAnnotationQueryBuilder().
		Name(name).
		Datasource(datasource()).
		Enable(true).
		IconColor(color).
		Expr("1000 * max by (" + s.groups(more...) + ") (" + s.of(metric) + " > 0)").
		UseValueForTime(true)
}

// inWords returns the name of a state with spaces instead of underscores.
func inWords(state finding.State) string { return strings.ReplaceAll(state.String(), "_", " ") }

// stateNames maps the values of stream_state to the names of the states.
func stateNames() []dashboard.ValueMapping {
	options := valueTexts{}
	for state, color := range map[finding.State]string{
		finding.WarmingUp: faint, finding.OK: green, finding.Drift: red, finding.TelemetryFault: purple,
	} {
		options.as(strconv.Itoa(int(state)), int(state), inWords(state), color)
	}
	return options.mappings()
}

// toConsole returns the link of a column to a page of the console, whose address ends in the text of the cell.
func toConsole(title, path, column string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "links", Value: []map[string]any{
		{"title": title, "url": "${console:raw}" + path + `${__data.fields["` + column + `"]}`, "targetBlank": true},
	}}}
}

// documents returns the address of the documentation.
func documents() string { return strings.TrimSuffix(alerts.Runbooks, "runbooks.md") }

// documented is a panel with a link to the page of the documentation that explains its terms.
type documented struct {
	cog.Builder[dashboard.Panel]
	page string
}

func (d documented) Build() (dashboard.Panel, error) {
	p, err := d.Builder.Build()
	p.Links = []dashboard.DashboardLink{{
		Title: "Documentation", Type: dashboard.DashboardLinkTypeLink, TargetBlank: true, Tags: []string{},
		Url: cog.ToPtr(documents() + d.page),
	}}
	return p, err
}

// folded adds a row that is initially closed. Its panels link to a page of the documentation.
func folded(d *dashboard.DashboardBuilder, title, page string, panels ...cog.Builder[dashboard.Panel]) {
	row := dashboard.NewRowBuilder(title)
	for _, p := range panels {
		row.WithPanel(documented{p, page})
	}
	d.WithRow(row)
}

// faultNames maps 1 and 0 to "faulty" and "ok".
func faultNames() []dashboard.ValueMapping {
	return valueTexts{}.as("0", 0, "ok", green).as("1", 1, "faulty", purple).mappings()
}
