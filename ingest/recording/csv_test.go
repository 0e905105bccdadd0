package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// rowsOf reads a CSV file of telemetry version 1, and returns its decoded records.
func rowsOf(t *testing.T, content string, cfg FilesConfig) (rows []string, refused []*ingest.RecordError, err error) {
	t.Helper()
	cfg.Accepted = func(_ *ingest.Event, record []byte) { rows = append(rows, string(record)) }
	cfg.Refuse = func(e *ingest.RecordError, _ []byte) { refused = append(refused, e) }
	if cfg.Stdin == nil {
		cfg.Stdin = strings.NewReader(content)
	}
	counts, err := ReadFiles(t.Context(), cfg, []string{"-"}, &fileProcessor{})
	if int(counts.Accepted) != len(rows) || int(counts.Read) != len(rows)+len(refused) {
		t.Errorf("counts %+v of %d rows and %d refused ones", counts, len(rows), len(refused))
	}
	return rows, refused, err
}

func TestRowsOfCSV(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    []string
	}{
		"numbers, words, truth and what is missing": {
			"policy,reward,action,terminated,env\np,-1.5e3,left,True,eu\np,0,7,FALSE,\n",
			[]string{`{"policy":"p","reward":-1.5e3,"action":"left","terminated":true,"env":"eu"}`, `{"policy":"p","reward":0,"action":7,"terminated":false}`},
		},
		"numbers that JSON has not":     {"policy,reward,action\np,-.5,007\np,+2.,1.\np,NaN,-\np,1,+Inf\n", []string{`{"policy":"p","reward":-0.5,"action":"007"}`, `{"policy":"p","reward":2,"action":1}`, `{"policy":"p","reward":"NaN","action":"-"}`, `{"policy":"p","reward":1,"action":"+Inf"}`}},
		"the index of pandas":           {",policy,reward\n0,p,1\n1,p,2\n", []string{`{"policy":"p","reward":1}`, `{"policy":"p","reward":2}`}},
		"decimal commas":                {"policy;reward;env;action\np;-1,50;1,2,3;01,5\n", []string{`{"policy":"p","reward":-1.50,"env":"1,2,3","action":"01,5"}`}},
		"decimal points":                {"policy;reward;action\np;0.5;1,10\np;1;1,1\n", []string{`{"policy":"p","reward":0.5,"action":"1,10"}`, `{"policy":"p","reward":1,"action":"1,1"}`}},
		"no decimal commas":             {"policy,reward,env\np,2,\"1,5\"\n", []string{`{"policy":"p","reward":2,"env":"1,5"}`}},
		"semicolons":                    {"policy;reward;env\np;1;a,b\n", []string{`{"policy":"p","reward":1,"env":"a,b"}`}},
		"tabs, a byte order mark, CRLF": {"\xef\xbb\xbfpolicy\treward\r\np\t1\r\n\r\np\t2\r\n", []string{`{"policy":"p","reward":1}`, `{"policy":"p","reward":2}`}},
		"quotes":                        {"\"policy\", \"reward\"\n\"p \"\"x\"\"\",1\np,\"2\"", []string{`{"policy":"p \"x\"","reward":1}`, `{"policy":"p","reward":2}`}},
		"a value over lines":            {"policy,reward,action\np,1,\"a\nb,\n\"\np,2,c\n", []string{`{"policy":"p","reward":1,"action":"a\nb,\n"}`, `{"policy":"p","reward":2,"action":"c"}`}},
		"quotes within values":          {"policy,reward,action\np,1,5\" disk\np,2,\"a \"\"b\"\"\"\np,3,c\n", []string{`{"policy":"p","reward":1,"action":"5\" disk"}`, `{"policy":"p","reward":2,"action":"a \"b\""}`, `{"policy":"p","reward":3,"action":"c"}`}},
		"lists and objects":             {"policy,reward,observation,outcomes\np,1,\"[0.5, 1]\",\"{\"\"won\"\": 1}\"\n", []string{`{"policy":"p","reward":1,"observation":[0.5, 1],"outcomes":{"won": 1}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			rows, refused, err := rowsOf(t, test.content, FilesConfig{})
			if err != nil || len(refused) > 0 {
				t.Fatalf("error %v, refused %v", err, refused)
			}
			if fmt.Sprint(rows) != fmt.Sprint(test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(test.want, "\n"))
			}
			for _, row := range rows {
				if !json.Valid([]byte(row)) {
					t.Errorf("%s is not JSON", row)
				}
			}
		})
	}
}

// An unreadable row is refused with its position, and no other row is lost.
func TestRefusedRowsOfCSV(t *testing.T) {
	long := strings.Repeat("x", 100)
	rows, refused, err := rowsOf(t, "policy,reward,env\np,1,a\np,2\np,3,a,b\np,"+long+",c\np,4,\"a\n"+long+"\"\nq,5,\"a\np,6,b\n", FilesConfig{MaxRecord: 60})
	if err != nil || fmt.Sprint(rows) != `[{"policy":"p","reward":1,"env":"a"}]` {
		t.Errorf("rows %v, error %v", rows, err)
	}
	var got []string
	for _, e := range refused {
		got = append(got, fmt.Sprintf("%d %s %s", e.Pos.Offset, e.Reason, e.Msg))
	}
	want := []string{
		"1 wrong_columns the row has 2 columns, but the header has 3", "2 wrong_columns the row has 4 columns, but the header has 3",
		"3 too_large", "4 too_large", "5 truncated",
	}
	for i := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("refused\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestBrokenCSV(t *testing.T) {
	broken := errors.New("the disk is broken")
	rows, refused, err := rowsOf(t, "", FilesConfig{Stdin: io.MultiReader(strings.NewReader("policy,reward\np,1\np,\"2\n"), failing{broken})})
	if !errors.Is(err, broken) || len(rows) != 1 || len(refused) != 1 || refused[0].Reason != ingest.ReasonTruncated {
		t.Errorf("rows %v, refused %v, error %v", rows, refused, err)
	}
}

// Quoted text is never read as a record of its own, even in a long row.
func TestALongRowHoldsNoRows(t *testing.T) {
	rows, refused, err := rowsOf(t, "policy,reward,env\np,1,\""+strings.Repeat("x", 70)+"\nevil,999,forged\n\"\np,2,b\n", FilesConfig{MaxRecord: 60})
	if err != nil || fmt.Sprint(rows) != `[{"policy":"p","reward":2,"env":"b"}]` || len(refused) != 1 {
		t.Errorf("rows %v, refused %v, error %v", rows, refused, err)
	}
}

// A line of program output before the JSON is not a header.
func TestJSONBehindALine(t *testing.T) {
	rows, refused, err := rowsOf(t, "Starting run, please wait\n"+`{"policy":"p","reward":1}`+"\n", FilesConfig{})
	if err != nil || len(rows) != 1 || len(refused) != 1 {
		t.Errorf("rows %v, refused %v, error %v", rows, refused, err)
	}
}

// A file whose first line is not a header is read as before.
func TestWhatIsNoCSV(t *testing.T) {
	for _, line := range []string{`{"policy":"p","reward":1}`, `[1,2]`, "policy", "1,2", "a,a", "a,1", "a,", `"p",{"x":1}`, "", "a,\x00b", strings.Repeat("a", 101) + ",b"} {
		if tableOf([]byte(line)) != nil {
			t.Errorf("%q is taken for the header of a CSV file", line)
		}
	}
}

func FuzzCSV(f *testing.F) {
	f.Add("policy,reward\np,1\n\"p\n\",2")
	f.Add("policy,reward\np,-.5\np,+Inf\np,5\" x\np,1.")
	f.Add(",policy;\"a\"\"b\"\n1;2;[1]")
	f.Fuzz(func(t *testing.T, content string) {
		header, rest, _ := bytes.Cut([]byte(content), []byte("\n"))
		table := tableOf(header)
		if table == nil {
			return
		}
		if object, refused := table.object(rest); refused == nil && !json.Valid(object) {
			t.Errorf("%q is not JSON", object)
		}
		_, err := ReadFiles(context.Background(), FilesConfig{Stdin: strings.NewReader(content), MaxRecord: 100}, []string{"-"}, &fileProcessor{})
		if err != nil {
			t.Error(err)
		}
	})
}

// An unclosed quote takes time proportional to the lines after it, not to their square.
func TestAQuoteThatNeverEnds(t *testing.T) {
	begun := time.Now()
	rows, refused, err := rowsOf(t, "policy,reward\np,\""+strings.Repeat("\n", 2*ingest.DefaultMaxRecord), FilesConfig{})
	if err != nil || len(rows) > 0 || len(refused) != 1 || refused[0].Reason != ingest.ReasonTruncated {
		t.Errorf("%d rows, refused %v, error %v", len(rows), refused, err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}
