package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// proseRule is a rule of deploy/lint/prose at level error: a pattern, and Vale's message.
type proseRule struct {
	pattern *regexp.Regexp
	file    string
}

// proseRules returns the rules that .vale.ini applies to pages and comments.
func proseRules(t *testing.T) []proseRule {
	t.Helper()
	files, err := filepath.Glob("../../deploy/lint/prose/Rewardwatch/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	var rules []proseRule
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rule struct {
			Level  string            `yaml:"level"`
			Tokens []string          `yaml:"tokens"`
			Swap   map[string]string `yaml:"swap"`
		}
		if err := yaml.Unmarshal(text, &rule); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if rule.Level != "error" {
			continue
		}
		for word := range rule.Swap {
			rule.Tokens = append(rule.Tokens, word)
		}
		for _, word := range rule.Tokens {
			rules = append(rules, proseRule{regexp.MustCompile(`(?i)\b(?:` + word + `)\b`), filepath.Base(file)})
		}
	}
	return rules
}

// faultsOf returns what the rules find in a text.
func faultsOf(text string, rules []proseRule) (faults []string) {
	for _, r := range rules {
		if found := r.pattern.FindString(text); found != "" {
			faults = append(faults, r.file+": "+found)
		}
	}
	return faults
}

// The program's output follows the prose rules: every text of its code with several words, and its templates.
func TestStringsFollowTheRulesOfProse(t *testing.T) {
	rules := proseRules(t)
	texts := 0
	check := func(place, text string) {
		if !strings.Contains(strings.TrimSpace(text), " ") {
			return
		}
		texts++
		for _, fault := range faultsOf(text, rules) {
			t.Errorf("%s: %s, in %.120q", place, fault, text)
		}
	}
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		switch name := filepath.Base(file); {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(name, ".") && name != ".." || name == "testdata" || name == "vendor"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			return textsOf(file, check)
		case strings.HasSuffix(name, ".html"), strings.HasSuffix(name, ".tmpl"):
			text, err := os.ReadFile(file)
			check(file, string(text))
			return err
		}
		return nil
	})
	if err != nil || texts < 2000 {
		t.Fatalf("%d texts, %v", texts, err)
	}
}

func TestRulesOfProse(t *testing.T) {
	rules := proseRules(t)
	if len(rules) < 20 {
		t.Fatalf("%d rules", len(rules))
	}
	for text, want := range map[string]int{
		"start the service anew":           1,
		"Nobody decided in time":           1,
		"events a second":                  1,
		"the colour of the graph":          1,
		"start the service again":          0,
		"no decision was made in time":     0,
		"events per second, in gray color": 0,
	} {
		if got := faultsOf(text, rules); len(got) != want {
			t.Errorf("%q: %v, want %d faults", text, got, want)
		}
	}
}
