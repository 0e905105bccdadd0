package console

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console/plots"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Report is the result of a replay.
type Report struct {
	Read      []words.Fact // description of the input
	Incidents []alerts.Incident
	Summaries []*finding.Summary
	Courses   plots.Courses
	// Past returns the past values of a group's signals.
	Past func(ingest.Group) history.Record
	// Story describes an alarm, and Causes an incident and its cause.
	Story  func(alerts.Alarm) []words.Fact
	Causes func(alerts.Incident) []words.Fact
}

// Limits on the content of a page, so that a browser can still show it.
const (
	maxReportIncidents = 50
	maxReportAlarms    = 20 // of an incident
	maxReportCharts    = 200
)

// WriteReport writes a self-contained page, which needs no network. Its only script zooms. The same report always
// produces the same bytes.
func WriteReport(w io.Writer, r Report) error {
	style := string(must(web.ReadFile("web/console.css"))) + string(must(web.ReadFile("web/report.css")))
	script := string(must(web.ReadFile("web/report.js")))
	data := reportData{
		Style: template.CSS(style), StyleHash: hashOf(style), Script: template.JS(script), ScriptHash: hashOf(script), // embedded, and free of telemetry
		Read: r.Read, Left: max(0, len(r.Incidents)-maxReportIncidents),
	}
	for _, i := range r.Incidents[data.Left:] {
		data.Incidents = append(data.Incidents, r.incident(i))
	}
	room := maxReportCharts
	for _, p := range r.Summaries {
		for k := range p.Groups {
			data.Groups = append(data.Groups, r.group(&p.Groups[k], &room))
		}
	}
	if err := reportPage().Execute(w, data); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func reportPage() *template.Template {
	return template.Must(template.New("report.html").Funcs(template.FuncMap{"times": times, "capital": words.Capital}).ParseFS(web, "web/report.html"))
}

// reportData is the content of the page, as text. The template only lays it out.
type reportData struct {
	Style      template.CSS
	Script     template.JS
	StyleHash  string // no other style is allowed on the page
	ScriptHash string // no other script either
	Read       []words.Fact
	Left       int // number of older incidents not shown
	Incidents  []reportIncident
	Groups     []reportGroup
}

type reportIncident struct {
	ID, Title, Severity, State, Cause, Since string
	Signals                                  []string
	Facts                                    []words.Fact
	Left                                     int // number of alarms not shown
	Alarms                                   []reportAlarm
}

type reportAlarm struct {
	ID, Signal, State string
	Facts             []words.Fact
	Unit              finding.UnitName
	Values            *plots.Histogram // nil if there are none
	Past              *plots.Drawing   // nil if the signal has no past
	Score             *plots.Score
	Shifts            []reportShift
}

type reportShift struct {
	Signal, Quantity, Baseline, Now, Shift, Z string
	Drifted                                   bool
}

type reportGroup struct {
	Title, Baseline, Versions string
	Units                     string // number and unit name
	Streams                   []reportStream
}

type reportStream struct {
	Signal, State, Class, Missing, Score string
	Progress                             string       // of the return of a policy that learns
	Plot                                 *plots.Score // nil if no detector is armed, or if there are too many plots
}

func (r *Report) incident(i alerts.Incident) reportIncident {
	alarms, left := firingFirst(&i, maxReportAlarms)
	out := reportIncident{
		ID: i.ID, Title: i.Group.String(), Severity: string(i.Severity), State: "open", Cause: words.Cause(&i),
		Since: since(&i).Moment(i.UnitName()), Facts: r.Causes(i), Left: left,
	}
	if i.Closed {
		out.State = "closed"
	}
	course := r.Courses.Of(i.Group)
	for _, a := range i.Alarms {
		if !slices.Contains(out.Signals, a.Signal) {
			out.Signals = append(out.Signals, a.Signal)
		}
	}
	record := r.Past(i.Group)
	p := plots.Past{Record: record, Changes: plots.ChangesOf(&record, course.Changes), Unit: i.UnitName()}
	for _, a := range alarms {
		drawn := r.alarm(*a, course)
		drawn.Past = p.Draw(a.Signal, plots.LevelOf(a), &i)
		out.Alarms = append(out.Alarms, drawn)
	}
	return out
}

func (r *Report) alarm(a alerts.Alarm, course plots.Course) reportAlarm {
	out := reportAlarm{
		ID: a.ID, Signal: a.Signal, State: words.AlarmState(a), Facts: r.Story(a), Unit: a.UnitName(),
		Values: plots.HistogramOf(words.Quantity(a), a.UnitName(), a.Histogram),
		Score:  plots.ScoreOf(course, a.UnitName(), a.Signal, []alerts.Alarm{a}),
	}
	for _, s := range a.Shifts {
		out.Shifts = append(out.Shifts, reportShift{
			Signal: s.Signal, Quantity: finding.QuantityWords(s.Quantity), Baseline: words.Short(s.BaselineMean), Now: words.Short(s.CurrentMean),
			Shift: fmt.Sprintf("%+.2f SD", s.StandardShift), Z: fmt.Sprintf("%+.1f", s.Z), Drifted: s.Drifted,
		})
	}
	return out
}

func (r *Report) group(g *finding.GroupSummary, room *int) reportGroup {
	out := reportGroup{
		Title: g.Group.String(), Baseline: words.Baseline(g.Baseline, g.UnitName()), Versions: words.Versions(g.Versions), Units: g.UnitName().Count(g.Units),
	}
	course := r.Courses.Of(g.Group)
	for k := range g.Streams {
		s := &g.Streams[k]
		row := reportStream{
			Signal: s.Signal, State: words.Plain(s.State.String()), Class: stateClass(s.State), Missing: words.Missing(*s),
			Progress: words.Progress(s.Progress, g.UnitName()),
		}
		if score, armed := words.Score(s); armed {
			row.Score = words.Short(score)
			if *room > 0 {
				*room--
				row.Plot = plots.ScoreOf(course, g.UnitName(), s.Signal, r.alarmsOf(g.Group, s.Signal))
			}
		}
		out.Streams = append(out.Streams, row)
	}
	return out
}

// alarmsOf returns the alarms of a stream.
func (r *Report) alarmsOf(g ingest.Group, signal string) (out []alerts.Alarm) {
	for _, i := range r.Incidents {
		for _, a := range i.Alarms {
			if a.Group == g && a.Signal == signal {
				out = append(out, a)
			}
		}
	}
	return out
}
