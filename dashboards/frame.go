package dashboards

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// frame is what all dashboards have in common: the variables datasource, job, policy and one for each label of a group, the
// annotations, and links to the others.
func frame(title, description, uid string, s scope, policy *dashboard.QueryVariableBuilder) *dashboard.DashboardBuilder {
	d := dashboard.NewDashboardBuilder(title).
		Description(description).
		Uid(uid).
		Tags([]string{"rewardwatch"}).
		Timezone("browser").
		Time("now-6h", "now").
		Refresh("30s").
		Readonly(). // what is changed in Grafana would be lost with the next version
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(everything(variable("job", "Job", "label_values("+buildInfo+", job)")).AllValue(".+")).
		WithVariable(policy)
	for _, label := range s.labels {
		d.WithVariable(groupVariable(s, label))
	}
	for _, other := range pages() {
		if other.uid != uid {
			d.Link(dashboard.NewDashboardLinkBuilder(other.title).
				Type(dashboard.DashboardLinkTypeLink).Url("/d/" + other.uid).KeepTime(true).IncludeVars(true))
		}
	}
	return d.Annotation(alarmAnnotation(s)).Annotation(versionAnnotation(s))
}

func policyVariable() *dashboard.QueryVariableBuilder {
	return variable("policy", "Policy", "label_values("+bank.MetricStreamState+`{job=~"$job"}, policy)`)
}

func groupVariable(s scope, label string) *dashboard.QueryVariableBuilder {
	return everything(variable(label, label, "label_values("+s.policies(bank.MetricStreamState)+", "+label+")"))
}

// signalVariable offers the signals that are numbers: what an action of categories does stands in a row of its own.
func signalVariable() *dashboard.QueryVariableBuilder {
	return variable("signal", "Signal", "label_values("+bank.MetricSignalMean+`{job=~"$job",policy="$policy"}, signal)`).
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

// everything offers "All", as a pattern that also matches series without the label.
func everything(v *dashboard.QueryVariableBuilder) *dashboard.QueryVariableBuilder {
	return v.Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{Text: text("All"), Value: text("$__all")})
}

func text(s string) dashboard.StringOrArrayOfString {
	return dashboard.StringOrArrayOfString{String: &s}
}

// alarmAnnotation marks the time over which alarms of a group fire.
func alarmAnnotation(s scope) *dashboard.AnnotationQueryBuilder {
	return dashboard.NewAnnotationQueryBuilder().
		Name("Alarms").
		Datasource(datasource()).
		Enable(true).
		IconColor(red).
		Expr("sum by (" + s.groups("severity") + ") (" + s.of(alerts.MetricAlarms) + ") > 0").
		TitleFormat("alarm ({{severity}})").
		TextFormat(s.legend()).
		TagKeys("severity")
}

// versionAnnotation marks where a group that was there before shows a version that was not. Without the second
// condition every start of Rewardwatch would look like a change.
func versionAnnotation(s scope) *dashboard.AnnotationQueryBuilder {
	now := s.of(bank.MetricVersionInfo)
	before := now + " offset $__rate_interval"
	return dashboard.NewAnnotationQueryBuilder().
		Name("Versions").
		Datasource(datasource()).
		Enable(true).
		IconColor(blue).
		Expr("(" + now + " unless " + before + ") and on (" + s.groups() + ") (" + before + ")").
		TitleFormat("new version").
		TextFormat(s.legend() + ": policy {{policy_version}}, environment {{env_version}}, reward function {{reward_version}}").
		TagKeys("policy")
}

// stateNames maps the values of stream_state to the names of the states.
func stateNames() []dashboard.ValueMapping {
	options := map[string]dashboard.ValueMappingResult{}
	for state, color := range map[bank.State]string{
		bank.WarmingUp: gray, bank.OK: green, bank.Drift: red, bank.TelemetryFault: purple,
	} {
		options[strconv.Itoa(int(state))] = dashboard.ValueMappingResult{
			Text: cog.ToPtr(state.String()), Color: cog.ToPtr(color), Index: cog.ToPtr(int32(state)),
		}
	}
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: options}}}
}

// faultNames maps 1 and 0 to whether a signal is in a fault.
func faultNames() []dashboard.ValueMapping {
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: map[string]dashboard.ValueMappingResult{
		"0": {Text: cog.ToPtr("sound"), Color: cog.ToPtr(green), Index: cog.ToPtr(int32(0))},
		"1": {Text: cog.ToPtr("faulty"), Color: cog.ToPtr(purple), Index: cog.ToPtr(int32(1))},
	}}}}
}
