package yamlfile

import (
	"fmt"
	"strings"
	"testing"
)

// What YAML allows before and after the keys is not a mistake.
func TestTextAroundTheDocument(t *testing.T) {
	for name, text := range map[string]string{
		"a byte order mark":             "\ufeffv: x\n",
		"a directive":                   "%YAML 1.2\n---\nv: x\n",
		"a directive after a comment":   "# by hand\n%YAML 1.1\n---\nv: x\n",
		"a mark and a directive":        "\ufeff%YAML 1.2\n---\nv: x\n",
		"the end of the document":       "---\nv: x\n...\n",
		"lines that end as on Windows":  "\ufeffv: x\r\n",
		"a mark before its explanation": "\ufeff# by hand\nv: x\n",
	} {
		v, problems := read(text)
		if v.Scalar != "x" || len(problems) > 0 {
			t.Errorf("%s: %q, %v", name, v.Scalar, problems)
		}
	}
}

// Bytes that are not UTF-8 are reported with their place, instead of being replaced.
func TestBytesThatAreNoText(t *testing.T) {
	for text, want := range map[string]Place{
		"v: L\xe4ndet\n":          {"f.yaml", 1, 5},
		"# é é\nv: 'é \xff'\n":    {"f.yaml", 2, 7},
		"\xff\xfev\x00:\x00":      {"f.yaml", 1, 1},
		"v: x # \xed\xa0\x80 \n":  {"f.yaml", 1, 8},
		"v: x\nw: \xc3":           {"f.yaml", 2, 4},
		"\ufeffv: \xe4\n":         {"f.yaml", 1, 4},
		"v: |\n  eins\n  zw\xf6i": {"f.yaml", 3, 5},
	} {
		_, problems := read(text)
		if len(problems) != 1 || problems[0].Place != want || !strings.Contains(problems[0].Message, "UTF-8") {
			t.Errorf("%q: %v, want %v", text, problems, want)
		}
	}
}

// A colon without a space after it is part of a word, also in brackets within braces.
func TestWordsWithColonsInBrackets(t *testing.T) {
	for text, want := range map[string]string{
		"[k1:9092, k2:9092]":                       "k1:9092 k2:9092",
		"{in: [k1:9092, k2.example:9093]}":         "k1:9092 k2.example:9093",
		"{in: [a:b:c, 'x:1', \"y\", ale:Pong-v5]}": "a:b:c x:1 y ale:Pong-v5",
		"{in: [k1:0092, k:1.50, k:true]}":          "k1:0092 k:1.50 k:true",
		"{in: [k: 9092]}":                          "map[k:9092]",
	} {
		v, problems := read("v: " + text + "\n")
		items := v.Items
		if v.Kind == Mapping {
			items = v.Members["in"].Items
		}
		var got []string
		for _, item := range items {
			if item.Kind == Mapping {
				got = append(got, fmt.Sprintf("map[k:%s]", item.Members["k"].Scalar))
			} else {
				got = append(got, item.Scalar)
			}
		}
		if strings.Join(got, " ") != want || len(problems) > 0 {
			t.Errorf("%s: %q, want %q; %v", text, got, want, problems)
		}
		var list struct {
			V struct {
				In []string `yaml:"in"`
			} `yaml:"v"`
		}
		if strings.HasPrefix(text, "{") && !strings.Contains(text, "k: ") {
			if p := Read("f.yaml", []byte("v: "+text+"\n"), &list).Problems(); len(p) > 0 || strings.Join(list.V.In, " ") != want {
				t.Errorf("%s as strings: %q, %v", text, list.V.In, p)
			}
		}
	}
}
