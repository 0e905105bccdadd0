package console

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/session"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// actPart is the part of an incident's page on which people act, beside its headline.
type actPart struct {
	Form     actForm
	Login    string // link from the root to the login page, if a token is required first
	Closed   string // why no action is possible here
	Guard    string // guard that a person can release; "" for a drift
	Open     bool   // whether the incident is open, so that it can be muted and accepted
	Decides  bool   // whether the person may accept it and decide on requests
	Muted    bool
	Long     int // duration in days, if the mute is so long that it is likely to be a mistake
	Mutes    []words.MutePreset
	Requests []actRequest // requests on which a person can decide
	Ask      *askPart     // nil if no retraining can be asked for
	Latest   []string     // newest decisions and comments of people, newest first
}

// actForm is the form, as last filled in.
type actForm struct {
	formPart
	Until, Recipe, Target string
}

// actRequest is a request of the incident with its possible decisions.
type actRequest struct {
	requestLine
	Seen   int
	Verbs  []verbPart
	Effect string // what the buttons do
}

// askPart is the part of the form for requesting a retraining.
type askPart struct {
	ID               string // id of the request, so that a second click does not open a second one
	Recipes, Targets []choice
}

// latestShown is the maximum number of decisions beside the headline.
const latestShown = 3

// actPart returns the actions that the person who requests the page can take on an incident.
func (c *Console) actPart(r *http.Request, i *alerts.Incident, ordered []requestLine, f actForm) actPart {
	who, may := c.may(r, access.Act)
	f.formPart = f.by(r, who, may)
	d := actPart{Form: f, Login: f.Login, Closed: f.Closed, Open: !i.Closed, Muted: i.IsMuted(), Mutes: words.MutePresets()}
	d.Decides = who.Role.Permits(access.Decide)
	if mute := lastMute(i); d.Muted && words.MutedLong(mute.At, i.MutedUntil) {
		d.Long = words.MutedLongDays
	}
	if g := i.Guard(); g != nil {
		d.Guard = g.Name
	}
	for _, line := range ordered {
		if n := len(line.Decided); n > 0 {
			d.Latest = append(d.Latest, line.Decided[n-1].Of(words.Ordered(line.Kind)))
		}
	}
	d.Latest = append(d.Latest, latest(i)...)
	if d.Login == "" && d.Closed == "" && c.desk != nil {
		if d.Decides {
			d.Requests = c.decidable(r.Context(), ordered)
		}
		if len(d.Requests) == 0 {
			d.Ask = c.askPart(i.Group.Policy, f)
		}
	}
	return d
}

// latest returns the newest decisions and comments, newest first. It omits mutes that are no longer in effect, which
// are part of the list of all decisions.
func latest(i *alerts.Incident) (out []string) {
	superseded := false
	for _, d := range slices.Backward(i.Decisions) {
		if d.Kind == alerts.Muted || d.Kind == alerts.Unmuted {
			past := superseded || d.Kind == alerts.Muted && !i.IsMuted()
			superseded = true
			if past {
				continue
			}
		}
		if out = append(out, words.Decision(d)); len(out) == latestShown {
			break
		}
	}
	return out
}

// lastMute returns the last mute of an incident. Comments may follow it: repeating a mute adds no decision.
func lastMute(i *alerts.Incident) (last alerts.Decision) {
	for _, d := range i.Decisions {
		if d.Kind == alerts.Muted {
			last = d
		}
	}
	return last
}

// decidable returns the requests on which people can decide. It returns none if the ledger does not answer in time,
// which is reported elsewhere on the page.
func (c *Console) decidable(ctx context.Context, ordered []requestLine) []actRequest {
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	var out []actRequest
	for _, line := range ordered {
		verbs := verbsFor(line.state)
		if line.state.Final() || len(verbs) == 0 {
			continue
		}
		history, err := c.desk.History(ctx, line.ID)
		if err != nil {
			c.log.Error().Err(err).Msg("failed to read the ledger")
			return nil
		}
		out = append(out, actRequest{requestLine: line, Seen: len(history), Verbs: verbs, Effect: words.EffectOf(line.state)})
	}
	return out
}

// askPart returns nil if there is no recipe or no target to choose.
func (c *Console) askPart(policy string, f actForm) *askPart {
	recipes, targets := c.desk.Offers(policy)
	if len(recipes) == 0 || len(targets) == 0 {
		return nil
	}
	choices := func(names []string, chosen string) (out []choice) {
		for _, name := range names {
			out = append(out, choice{Value: name, Text: name, Chosen: name == chosen})
		}
		return out
	}
	return &askPart{ID: rand.Text(), Recipes: choices(recipes, f.Recipe), Targets: choices(targets, f.Target)}
}

// Errors of a mute without a valid end. People see their texts, which contain no time, because an example would soon be
// past.
var (
	errNoTime   = errors.New("enter the end of the mute as YYYY-MM-DD HH:MM")
	errNoDate   = errors.New("the end of the mute must include a date: enter it as YYYY-MM-DD HH:MM")
	errPastTime = errors.New("the end of the mute has passed: set a time in the future")
)

// act carries out the action in the form of an incident.
func (c *Console) act(w http.ResponseWriter, r *http.Request) {
	f, order, err := readForm(w, r)
	form := actForm{formPart: f, Until: r.PostForm.Get("until"), Recipe: r.PostForm.Get("recipe"), Target: r.PostForm.Get("target")}
	incidents := c.view.Incidents()
	at := slices.IndexFunc(incidents, func(i alerts.Incident) bool { return i.ID == named(r, "id") })
	if at < 0 {
		c.missing(w, r, "Incident not found. Incidents that closed long ago are no longer stored.")
		return
	}
	if err == nil {
		var who session.Person
		who, err = c.may(r, rightFor(order))
		form.formPart = form.as(who)
	}
	if err == nil {
		err = c.carryOutOrder(r, &incidents[at], order, form)
	}
	if err != nil {
		var status int
		status, form.Problem = c.refusal(err)
		c.showIncident(w, r, status, &incidents[at], form)
		return
	}
	c.remember(w, r, form.formPart)
	seeOther(w, segment(incidents[at].ID)+savedQuery(order)+"#act")
}

// confirmations are what pages say after a form, by the verb of its button.
var confirmations = map[string]string{
	"comment":                    "Your comment was saved.",
	"mute":                       "The incident is muted.",
	"unmute":                     "The incident is no longer muted.",
	"accept":                     "The incident was closed.",
	"ask":                        "The retraining was requested. It needs no approval.",
	string(retrain.VerbApprove):  "The request was approved.",
	string(retrain.VerbReject):   "The request was closed.",
	string(retrain.VerbWithdraw): "The request was withdrawn.",
	string(retrain.VerbResend):   "The request will be delivered again.",
}

// savedQuery returns the query for a page that confirms a form. A refresh of the page does not repeat the confirmation.
func savedQuery(order string) string {
	verb, _, _ := strings.Cut(order, " ")
	return "?saved=" + verb
}

// saved returns the confirmation of the form that led to a page, or "" if none did. A refused form shows its own page.
func saved(r *http.Request) string {
	if r.Method != http.MethodGet {
		return ""
	}
	return confirmations[r.URL.Query().Get("saved")]
}

// rightFor returns the right that a button of the form requires.
func rightFor(order string) access.Right {
	switch verb, _, _ := strings.Cut(order, " "); verb {
	case "comment", "mute", "unmute", "ask":
		return access.Act
	}
	return access.Decide
}

// carryOutOrder carries out one button of the form, which consists of a verb and its object.
func (c *Console) carryOutOrder(r *http.Request, i *alerts.Incident, order string, f actForm) error {
	verb, about, _ := strings.Cut(order, " ")
	if err := f.check(verb, slices.Sorted(maps.Keys(confirmations))...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), decisionPatience)
	defer cancel()
	d := alerts.Decision{By: f.By, Why: f.Why, At: c.now().UTC()}
	var err error
	switch verb {
	case "comment":
		d.Kind = alerts.Commented
		_, err = c.orders.Comment(ctx, i.ID, d)
	case "accept":
		d.Kind = alerts.Accepted
		_, err = c.orders.Accept(ctx, i.ID, d)
	case "unmute":
		d.Kind = alerts.Unmuted
		_, err = c.orders.Mute(ctx, i.ID, d)
	case "mute":
		d.Kind = alerts.Muted
		if d.Until, err = muteEnd(about, f.Until, d.At); err == nil {
			_, err = c.orders.Mute(ctx, i.ID, d)
		}
	case "ask":
		if c.desk == nil {
			return retrain.ErrBadAsk
		}
		_, err = c.desk.Ask(ctx, retrain.Ask{ID: about, Policy: i.Group.Policy, Recipe: f.Recipe, Target: f.Target, By: f.By, Why: f.Why, Incident: i})
	default:
		if seen, failed := strconv.Atoi(r.PostForm.Get("seen-" + about)); failed == nil && seen >= 0 {
			f.Seen = seen
		}
		err = c.settle(ctx, about, retrain.Verb(verb), f.formPart)
	}
	return err
}

// muteEnd returns the end of a mute: after a preset duration, or at a time in UTC.
func muteEnd(preset, until string, now time.Time) (time.Time, error) {
	until = strings.TrimSpace(until)
	end, err := words.ParseTime(until)
	if preset != "" {
		var d model.Duration
		d, err = model.ParseDuration(preset)
		end = now.Add(time.Duration(d) + time.Minute).Truncate(time.Minute) // so that a second click is the same decision
	}
	_, noTime := time.Parse("15:04", until)
	switch {
	case err != nil && preset == "" && noTime == nil:
		return time.Time{}, errNoDate
	case err != nil:
		return time.Time{}, errNoTime
	case !end.After(now):
		return time.Time{}, errPastTime
	}
	return end.UTC(), nil
}
