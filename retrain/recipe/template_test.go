package recipe

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// hostile returns an incident whose names, which come from telemetry, look like templates.
func hostile() filler {
	inc := retraintest.Incident("i1", `{{ cause }} {{ printf "%s" }} ${HOME} $(id)`)
	inc.Alarms = append(inc.Alarms, retraintest.Alarm("reward"))
	inc.Alarms[0].Onset.Ordinal, inc.Alarms[0].Onset.TS = 42, 1_795_168_800_250_000_000
	return filler{references: referencesFor([]string{"env", "label_region"}), order: newOrder("rr_1", inc, inc.Alarms), onset: onsetOf(inc.Alarms[0])}
}

func TestTemplatesAreFilled(t *testing.T) {
	f := hostile()
	policy, err := json.Marshal(f.order.Policy)
	check(t, err)
	for text, want := range map[string]string{
		"{{ policy }}":                             string(policy),
		"{{request.id}}":                           `"rr_1"`,
		"{{ incident.id }}/{{\tcause\n}}":          `"i1/policy"`,
		"{{ signals }}":                            `["return","reward"]`,
		"drift of {{ signals }}":                   `"drift of return, reward"`,
		"{{ group.env }}{{ group.label_region }}.": `"prod-eu."`,
		"{{ group.label_region }}":                 `""`,
		"{{ versions.before.policy_version }}-{{ versions.after.policy_version }}": `"v1-v2"`,
		"{{ versions.after.env_version }}{{ versions.before.env_version }}":        `"4141"`,
		"{{ versions.after.reward_version }}{{ versions.before.reward_version }}":  `"r7r7"`,
		"{{ baseline.id }}":             `"b1"`,
		"{{ baseline.units }}":          `500`,
		"of {{ baseline.units }} units": `"of 500 units"`,
		"{{ offsets.baseline }}":        `[{"first":0,"last":900,"partition":0}]`,
		"at {{ offsets.drifted }}":      `"at [{\"partition\":0,\"first\":1000,\"last\":1100}]"`,
		"{{ onset.unit }}":              `42`,
		"{{ onset.ts }}":                `"2026-11-20T10:00:00.25Z"`,
		`{{"{{"}} workflow }}`:          `"{{ workflow }}"`,
		`{{ "{{" }}{{ request.id }}}}`:  `"{{rr_1}}"`,
		"no template } { }}":            `"no template } { }}"`,
		"":                              `""`,
	} {
		v, err := f.value(yamlfile.Value{Kind: yamlfile.String, Scalar: text})
		check(t, err)
		got, err := json.Marshal(v)
		check(t, err)
		if string(got) != want {
			t.Errorf("%s gives %s, want %s", text, got, want)
		}
	}
	f.onset = onsetOf(alerts.Alarm{})
	for text, want := range map[string]string{"{{ onset.ts }}": "null", "since {{ onset.ts }}": `"since unknown"`} {
		v, err := f.value(yamlfile.Value{Kind: yamlfile.String, Scalar: text})
		check(t, err)
		if got, err := json.Marshal(v); string(got) != want || err != nil {
			t.Errorf("without a clock %s gives %s, want %s", text, got, want)
		}
	}
}

// A reference has the type that it declares. Otherwise a recipe could change a type by it.
func TestReferencesHaveTheirKinds(t *testing.T) {
	f := hostile()
	for name, r := range f.references {
		v, err := f.value(yamlfile.Value{Kind: yamlfile.String, Scalar: "{{ " + name + " }}"})
		check(t, err)
		if v.Kind != r.kind {
			t.Errorf("%s is %s, said to be %s", name, v.Kind, r.kind)
		}
	}
}

// FuzzTemplate compares templates with a replacement by one regular expression. It shows that a template only
// inserts the values of its names: inserted text is never read again.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{
		"{{ policy }}", `{{"{{"}}`, "a {{ signals }} b", "{{ policy | upper }}", "{{{ policy }}}", "{{ {{ policy }} }}", "{{", "}}{{",
		"{{ group.env }}{{ offsets.drifted }}", `{{ template "x" }}{{ call .F }}`, "{{/* c */}}", "{{- policy -}}", `{{"{{"}}{{"{{"}}`,
	} {
		f.Add(text)
	}
	fill := hostile()
	reference := regexp.MustCompile(`(?s)\{\{(.*?)\}\}`)
	f.Fuzz(func(t *testing.T, text string) {
		known := true
		want := reference.ReplaceAllStringFunc(text, func(part string) string {
			inside := strings.TrimSpace(part[2 : len(part)-2])
			r, ok := fill.references[inside]
			switch {
			case inside == `"{{"`:
				return "\x00" // not a brace, which could begin something
			case !ok:
				known = false
				return ""
			}
			return strings.ReplaceAll(textOf(r.of(fill.order, fill.onset)), "{", "\x01")
		})
		known = known && !strings.Contains(want, "{{")
		want = strings.NewReplacer("\x00", "{{", "\x01", "{").Replace(want)
		got, err := fill.text(yamlfile.Value{Kind: yamlfile.String, Scalar: text})
		if (err == nil) != known {
			t.Fatalf("%q: error %v, known %v", text, err, known)
		}
		if err == nil && got != want && !strings.ContainsAny(text, "\x00\x01") {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
		if bad, ok := errors.AsType[*textError](err); ok && !strings.HasPrefix(text[bad.at:], "{{") {
			t.Errorf("%q: the mistake is said to be at %d", text, bad.at)
		}
	})
}

// Filling a template leaves the recipe unchanged for the next incident.
func TestFillingChangesNoRecipe(t *testing.T) {
	recipe := testRecipes(t)["ranker"]
	before, err := json.Marshal(recipe.config)
	check(t, err)
	for _, policy := range []string{"a", "b"} {
		inc := retraintest.Incident("i-"+policy, policy)
		inc.Alarms[0].Offsets = []ingest.Range{{Partition: 1, First: 2, Last: 3}}
		o := newOrder("rr_"+policy, inc, inc.Alarms)
		check(t, o.instruct(recipe, moment{}))
		if want := "the " + policy + " earns what it did"; o.Contract.Objective != want {
			t.Errorf("objective %q, want %q", o.Contract.Objective, want)
		}
	}
	if after, err := json.Marshal(recipe.config); string(after) != string(before) || err != nil {
		t.Errorf("the recipe is now %s", after)
	}
}
