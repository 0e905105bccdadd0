package fill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keep"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// State is the result of filling a hole.
type State string

// The states.
const (
	Proposed State = "proposed" // the model answered, and the answer passed all checks
	Cached   State = "cached"   // an earlier answer in the proposals file passed all checks
	Written  State = "written"  // a person wrote or accepted the text: the hole is not open
	Absent   State = "absent"   // the artefact is not generated
	Failed   State = "failed"
)

// Round is one answer of the model with its faults.
type Round struct {
	Faults []string `json:"faults,omitempty"` // none if the answer passed
}

// Outcome describes what happened to a hole.
type Outcome struct {
	Hole   string  `json:"hole"`
	File   string  `json:"file"`
	State  State   `json:"state"`
	Why    string  `json:"why,omitempty"` // reason of a failure
	Rounds []Round `json:"rounds,omitempty"`

	text string
	line int
}

// maxRounds is how often a model may correct an answer.
const maxRounds = 2

// Fill requests proposals for the open holes of a pipeline, and writes the answers that pass all checks to the
// proposals file. The changes are those that accepting all proposals would make. The failure of a hole is part of the
// error, but does not affect the other holes.
func Fill(ctx context.Context, w *pipeline.Work, dir string) ([]Outcome, []pipeline.Change, error) {
	return run(ctx, w, dir, true, nil)
}

// Accept returns the changes that put the proposals for the named holes, or for all, into their artefacts. It sends no
// requests.
func Accept(w *pipeline.Work, dir string, holes []string) ([]Outcome, []pipeline.Change, error) {
	for _, name := range holes {
		if !slices.ContainsFunc(Holes(), func(h Hole) bool { return h.Name == name }) {
			return nil, nil, fmt.Errorf("unknown proposal %q; expected one of %s", name, strings.Join(names(), ", "))
		}
	}
	return run(context.Background(), w, dir, false, holes)
}

func names() []string {
	var out []string
	for _, h := range Holes() {
		out = append(out, h.Name)
	}
	return out
}

// filler fills the holes of one pipeline.
type filler struct {
	work     *pipeline.Work
	changes  []pipeline.Change
	root     *os.Root
	answers  *answers
	readme   string
	endpoint *endpoint // nil if no requests are to be sent
	down     error     // the endpoint's failure, after which no more requests are sent
}

func run(ctx context.Context, w *pipeline.Work, dir string, call bool, only []string) ([]Outcome, []pipeline.Change, error) {
	f, err := newFiller(w, dir, call)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.root.Close() }() // writes are complete: WriteFile closes its file
	var outcomes []Outcome
	var problems []yamlfile.Problem
	for _, h := range Holes() {
		if len(only) > 0 && !slices.Contains(only, h.Name) {
			continue
		}
		o := f.hole(ctx, &h)
		if o.State == Failed {
			problems = append(problems, yamlfile.Problem{Place: yamlfile.Place{File: h.File, Line: max(1, o.line), Column: 1}, Path: h.Name, Message: o.Why})
		}
		outcomes = append(outcomes, o)
	}
	changes := slices.DeleteFunc(f.changes, func(c pipeline.Change) bool {
		return !slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.File == c.Path && (o.State == Proposed || o.State == Cached) })
	})
	return outcomes, changes, yamlfile.ErrorOf(problems)
}

func newFiller(w *pipeline.Work, dir string, call bool) (*filler, error) {
	m := &w.File.Model
	if m.URL == "" {
		return nil, yamlfile.ErrorOf([]yamlfile.Problem{{
			Place: yamlfile.Place{File: w.Path, Line: 1, Column: 1}, Path: "model.url", Message: "must be set to use fill",
		}})
	}
	changes, err := pipeline.Changes(w, dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the directory of the generated files: %w", err)
	}
	f := &filler{work: w, changes: changes, root: root}
	if err := f.open(call); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

// open reads the proposals, the README and the key as needed.
func (f *filler) open(call bool) error {
	m := &f.work.File.Model
	var err error
	if f.answers, err = readAnswers(f.root); err != nil {
		return err
	}
	if m.Readme {
		if f.readme, err = readmeOf(f.root); err != nil {
			return fmt.Errorf("read the README: %w", err)
		}
	}
	if !call {
		return nil
	}
	key, err := readKey(pipeline.ModelKeyFile(f.work))
	if err != nil {
		return fmt.Errorf("read model.key_file: %w", err)
	}
	timeout, err := time.ParseDuration(m.Timeout)
	if err != nil {
		return err
	}
	f.endpoint = newEndpoint(m, timeout, key)
	return nil
}

// hole fills a hole if it is open.
func (f *filler) hole(ctx context.Context, h *Hole) Outcome {
	o := Outcome{Hole: h.Name, File: h.File}
	failed := func(err error) Outcome {
		o.State, o.Why = Failed, err.Error()
		return o
	}
	i := slices.IndexFunc(f.changes, func(c pipeline.Change) bool { return c.Path == h.File && !c.Removed })
	if i < 0 {
		o.State = Absent
		return o
	}
	open, line, err := f.isOpen(h, f.changes[i].After)
	if err != nil {
		return failed(err)
	}
	if o.line = line; !open {
		o.State = Written
		return o
	}
	if err := f.answer(ctx, h, &o, f.changes[i].After); err != nil {
		return failed(err)
	}
	text, err := keep.WithPart(f.changes[i].After, h.Name, h.lines(o.text))
	if err != nil {
		return failed(err)
	}
	f.changes[i].After = text
	return o
}

// faults returns what is wrong with a text for a hole, on its own or in its artefact.
func (f *filler) faults(h *Hole, text, artefact string) []string {
	faults := h.check(text, f.key())
	if len(faults) > 0 {
		return faults
	}
	filled, err := keep.WithPart(artefact, h.Name, h.lines(text))
	if err != nil {
		return []string{err.Error()}
	}
	for _, p := range pipeline.CheckText(f.work, h.File, filled) {
		faults = append(faults, p.Message)
	}
	return faults
}

// isOpen reports whether a hole still has the text of its template, and the line of its keep marker. Regenerated files
// keep the text between keep markers. The text in the templates must therefore never change, or a file from an earlier
// build would look as if a person had written that text.
func (f *filler) isOpen(h *Hole, text string) (open bool, line int, err error) {
	i := slices.IndexFunc(f.work.Artefacts, func(a pipeline.Artefact) bool { return a.Path == h.File })
	empty, _, err := keep.Part(f.work.Artefacts[i].Text, h.Name)
	if err != nil {
		return false, 0, err
	}
	body, line, err := keep.Part(text, h.Name)
	if err == nil && line == 0 {
		err = fmt.Errorf("the file has no keep marker %q", h.Name)
	}
	return strings.TrimSpace(body) == "" || body == empty, line, err
}

// answer takes the text of a hole from the proposals file, or requests it.
func (f *filler) answer(ctx context.Context, h *Hole, o *Outcome, artefact string) error {
	prompt, err := conversation(h, projectOf(&f.work.File), f.readme)
	if err != nil {
		return err
	}
	model := f.work.File.Model.Name
	key, err := keyOf(h, model, prompt)
	if err != nil {
		return err
	}
	if text, ok := f.answers.find(key); ok {
		if faults := f.faults(h, text, artefact); len(faults) > 0 { // somebody edited the proposals file
			return fmt.Errorf("the proposal in %s is not allowed: %s", File, strings.Join(faults, "; "))
		}
		o.State, o.text = Cached, text
		return nil
	}
	switch {
	case f.endpoint == nil:
		return fmt.Errorf("no proposal matches the current file: run rewardwatch pipeline fill")
	case f.down != nil:
		return errors.New("not requested because the endpoint had already failed")
	}
	text, err := f.rounds(ctx, h, prompt, o, artefact)
	if err != nil {
		return err
	}
	f.answers.add(answer{Key: key, Hole: h.Name, Model: model, Text: text})
	if err := f.answers.write(f.root); err != nil {
		return fmt.Errorf("write %s: %w", File, err)
	}
	o.State, o.text = Proposed, text
	return nil
}

func (f *filler) key() string {
	if f.endpoint == nil {
		return ""
	}
	return f.endpoint.key
}

// rounds requests an answer, and lets the model correct it up to maxRounds times.
func (f *filler) rounds(ctx context.Context, h *Hole, prompt []message, o *Outcome, artefact string) (string, error) {
	for {
		said, err := f.endpoint.ask(ctx, prompt)
		if err != nil {
			if !errors.Is(err, errBudget) {
				f.down = err
			}
			return "", err
		}
		text, faults := h.read(said)
		if len(faults) == 0 {
			faults = f.faults(h, text, artefact)
		}
		o.Rounds = append(o.Rounds, Round{faults})
		if len(faults) == 0 {
			return text, nil
		}
		if len(o.Rounds) > maxRounds {
			return "", fmt.Errorf("the model's response was still invalid after %d corrections: %s", maxRounds, strings.Join(faults, "; "))
		}
		if len(said) > 2*h.maxBytes {
			said = "(an answer that was too long)"
		}
		prompt = append(slices.Clip(prompt), message{"assistant", said},
			message{"user", "Your answer is not allowed: " + strings.Join(faults, "; ") + `. Answer again with one JSON object {"text": "..."}.`})
	}
}

// read extracts the text from an answer.
func (h *Hole) read(said string) (string, []string) {
	if m := fence.FindStringSubmatch(said); m != nil {
		said = m[1]
	}
	var object struct {
		Text *string `json:"text"`
	}
	d := json.NewDecoder(strings.NewReader(said))
	d.DisallowUnknownFields()
	if err := d.Decode(&object); err != nil || object.Text == nil || d.More() {
		return "", []string{`it is not a single JSON object {"text": "..."}`}
	}
	return *object.Text, nil
}
