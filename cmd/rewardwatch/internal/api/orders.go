package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/access"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/cluster"
	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/console"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// maxOrder limits the size of the body of a person's request, in bytes.
const maxOrder = 64 << 10

// orderBody is the body of every POST by which a person changes something. Fields that a path does not use are refused.
type orderBody struct {
	By     string            `json:"by"`
	Why    string            `json:"why"`
	Until  *time.Time        `json:"until"`  // for a mute, instead of For
	For    *string           `json:"for"`    // for a mute, such as 4h
	Policy *string           `json:"policy"` // for a reset
	Group  map[string]string `json:"group"`  // for a reset
}

func (s *Server) incident(w http.ResponseWriter, r *http.Request) {
	for _, i := range s.view.Incidents() {
		if i.ID == r.PathValue("id") {
			s.answer(w, http.StatusOK, wire.IncidentOf(i))
			return
		}
	}
	s.refuseOrder(w, engine.ErrUnknownIncident)
}

func (s *Server) acceptIncident(w http.ResponseWriter, r *http.Request) {
	body, err := readOrder(w, r)
	if err = errors.Join(err, body.without(body.Until != nil || body.For != nil, "until and for"), body.withoutGroup()); err != nil {
		s.refuseBody(w, err)
		return
	}
	i, err := s.Orders.Accept(r.Context(), r.PathValue("id"), body.decision(alerts.Accepted, s.Now()))
	s.answerIncident(w, i, err)
}

func (s *Server) commentIncident(w http.ResponseWriter, r *http.Request) {
	body, err := readOrder(w, r)
	if err = errors.Join(err, body.without(body.Until != nil || body.For != nil, "until and for"), body.withoutGroup()); err != nil {
		s.refuseBody(w, err)
		return
	}
	i, err := s.Orders.Comment(r.Context(), r.PathValue("id"), body.decision(alerts.Commented, s.Now()))
	s.answerIncident(w, i, err)
}

func (s *Server) muteIncident(w http.ResponseWriter, r *http.Request) {
	body, err := readOrder(w, r)
	d := body.decision(alerts.Muted, s.Now())
	var timeErr error
	d.Until, timeErr = body.until(s.Now())
	if d.Until.IsZero() {
		d.Kind = alerts.Unmuted
	}
	if err = errors.Join(err, timeErr, body.withoutGroup()); err != nil {
		s.refuseBody(w, err)
		return
	}
	i, err := s.Orders.Mute(r.Context(), r.PathValue("id"), d)
	s.answerIncident(w, i, err)
}

func (s *Server) answerIncident(w http.ResponseWriter, i alerts.Incident, err error) {
	if err != nil {
		s.refuseOrder(w, err)
		return
	}
	s.answer(w, http.StatusOK, wire.IncidentOf(i))
}

func (s *Server) promoteBaseline(w http.ResponseWriter, r *http.Request) {
	body, err := readOrder(w, r)
	if err = errors.Join(err, body.without(body.Until != nil || body.For != nil, "until and for"), body.withoutGroup()); err != nil {
		s.refuseBody(w, err)
		return
	}
	g, err := s.Orders.Promote(r.Context(), r.PathValue("id"), body.decision(alerts.Accepted, s.Now()))
	s.answerBaseline(w, g, err)
}

func (s *Server) resetBaseline(w http.ResponseWriter, r *http.Request) {
	body, err := readOrder(w, r)
	if body.Policy == nil || *body.Policy == "" || body.Group == nil {
		err = errors.Join(err, errors.New("policy and group are required to select the baseline to reset"))
	}
	if err = errors.Join(err, body.without(body.Until != nil || body.For != nil, "until and for")); err != nil {
		s.refuseBody(w, err)
		return
	}
	g, err := s.Orders.Reset(r.Context(), *body.Policy, body.Group, body.decision(alerts.Reset, s.Now()))
	s.answerBaseline(w, g, err)
}

func (s *Server) answerBaseline(w http.ResponseWriter, g *finding.GroupSummary, err error) {
	if err != nil {
		s.refuseOrder(w, err)
		return
	}
	s.answer(w, http.StatusOK, s.baselineOf(g))
}

// readOrder reads a body and checks the fields that every order requires. Its errors are for the client.
func readOrder(w http.ResponseWriter, r *http.Request) (orderBody, error) {
	var b orderBody
	if err := readBody(w, r, maxOrder, &b); err != nil {
		return b, err
	}
	b.By, b.Why = nameOf(r, strings.TrimSpace(b.By)), strings.TrimSpace(b.Why)
	return b, errors.Join(words.CheckText("by", b.By, words.MaxBy), words.CheckText("why", b.Why, words.MaxWhy))
}

// nameOf returns the name of the sender of an admitted request: the holder of its token, or else the stated name.
func nameOf(r *http.Request, stated string) string {
	who, _ := r.Context().Value(holderKey{}).(access.Holder)
	return cmp.Or(who.Name, stated)
}

// readBody reads a JSON object of at most the given number of bytes. It refuses unknown fields, fields with the wrong
// case, repeated fields, and anything after the object. Otherwise, the audit log could differ from the order that is
// carried out.
func readBody(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var fields map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err == nil && fields == nil {
		err = errors.New("found null")
	}
	for name := range fields {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			err = fmt.Errorf("unknown field %.100q", name)
		}
	}
	if err == nil {
		err = checkKeys(json.NewDecoder(bytes.NewReader(text)))
	}
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err = d.Decode(into)
	}
	if err != nil {
		return fmt.Errorf("the body is not a valid JSON object: %w", err)
	}
	return nil
}

// checkKeys returns an error if an object in the next value, which must be valid JSON, has a key twice.
func checkKeys(d *json.Decoder) error {
	opened, err := d.Token()
	if opened != json.Delim('{') && opened != json.Delim('[') {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		if opened == json.Delim('{') {
			key, err := d.Token()
			name, _ := key.(string)
			if err != nil || seen[name] {
				return cmp.Or(err, fmt.Errorf("duplicate field %.100q", name))
			}
			seen[name] = true
		}
		if err := checkKeys(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// refuseBody answers with the problem of a body.
func (s *Server) refuseBody(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		status = http.StatusRequestEntityTooLarge
	}
	s.refuse(w, status, err.Error())
}

func (b orderBody) without(given bool, names string) error {
	if given {
		return fmt.Errorf("unexpected keys: %s", names)
	}
	return nil
}

func (b orderBody) withoutGroup() error {
	return b.without(b.Policy != nil || b.Group != nil, "policy and group")
}

// until returns the end of a mute, or the zero time if the mute ends at once.
func (b orderBody) until(now time.Time) (time.Time, error) {
	var until time.Time
	switch {
	case b.Until != nil && b.For == nil:
		until = *b.Until
	case b.For != nil && b.Until == nil:
		d, err := model.ParseDuration(*b.For)
		if err != nil {
			return until, fmt.Errorf("invalid duration %q: use a number and a unit, such as 4h or 2d", *b.For)
		}
		if d == 0 {
			return until, nil
		}
		until = now.Add(time.Duration(d))
	default:
		return until, errors.New("set the end of the mute with either until (a time) or for (a duration)")
	}
	if !until.After(now) {
		return until, errors.New("the mute must end in the future")
	}
	return until.UTC(), nil
}

func (b orderBody) decision(kind alerts.DecisionKind, now time.Time) alerts.Decision {
	return alerts.Decision{Kind: kind, By: b.By, Why: b.Why, At: now.UTC()}
}

// isGone reports whether the values of a baseline are no longer kept.
func isGone(err error) bool { return errors.Is(err, engine.ErrBaselineEnded) }

// elsewhere returns a hint to ask other instances for an object that was not found.
func (s *Server) elsewhere(status int) string {
	if status != http.StatusNotFound || !s.Shared {
		return ""
	}
	return "; try the other instances of the group"
}

// refuseOrder answers with the reason why an order cannot be carried out.
func (s *Server) refuseOrder(w http.ResponseWriter, err error) {
	status, text := s.orderRefusal(err)
	s.refuse(w, status, text)
}

// orderRefusal returns the status of a refused order and the reason for the client. Errors that are not for clients are
// logged.
func (s *Server) orderRefusal(err error) (status int, text string) {
	for status, reasons := range map[int][]error{
		http.StatusNotFound: {engine.ErrUnknownIncident, engine.ErrUnknownBaseline, engine.ErrUnknownGroup, engine.ErrUnknownPolicy, engine.ErrUnknownGuard},
		http.StatusConflict: {engine.ErrGuardNotTripped, engine.ErrIncidentClosed, engine.ErrBaselineEnded},
	} {
		for _, reason := range reasons {
			if errors.Is(err, reason) {
				return status, reason.Error() + s.elsewhere(status)
			}
		}
	}
	s.log.Error().Err(err).Msg("failed to carry out a request")
	for _, reason := range []error{engine.ErrNotSaved, engine.ErrBusy, cluster.ErrUnitsAway, ledger.ErrSuspended} {
		if errors.Is(err, reason) {
			return http.StatusServiceUnavailable, reason.Error()
		}
	}
	return http.StatusServiceUnavailable, "the request failed: see the service log for details"
}

// consoleOrders carries out the orders of the console. It returns errors that its pages can show.
type consoleOrders struct{ s *Server }

// Accept implements pages.Orders.
func (o consoleOrders) Accept(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error) {
	i, err := o.s.Orders.Accept(ctx, incident, d)
	return i, o.refused(err)
}

// Mute implements pages.Orders.
func (o consoleOrders) Mute(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error) {
	i, err := o.s.Orders.Mute(ctx, incident, d)
	return i, o.refused(err)
}

// Comment implements pages.Orders.
func (o consoleOrders) Comment(ctx context.Context, incident string, d alerts.Decision) (alerts.Incident, error) {
	i, err := o.s.Orders.Comment(ctx, incident, d)
	return i, o.refused(err)
}

func (o consoleOrders) refused(err error) error {
	if err == nil {
		return nil
	}
	status, text := o.s.orderRefusal(err)
	return &pages.Refusal{Status: status, Text: text}
}
