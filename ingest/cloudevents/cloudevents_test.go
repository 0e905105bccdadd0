package cloudevents

import (
	"bytes"
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func message(value string, headers ...string) *ingest.Message {
	m := &ingest.Message{Value: []byte(value)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers = append(m.Headers, ingest.Header{Key: headers[i], Value: []byte(headers[i+1])})
	}
	return m
}

func TestConvert(t *testing.T) {
	const structured = `{"specversion":"1.0","type":"shop.step","source":"/shop","id":"1","time":"2026-11-20T10:00:00Z",` +
		"\n" + ` "datacontenttype":"application/json","data":{"policy":"p",` + "\r\n" + `"reward":1}}`
	for _, c := range []struct {
		name        string
		m           *ingest.Message
		whole, data string
	}{
		{
			"structured", message(structured, "content-type", "application/cloudevents+json; charset=UTF-8"),
			`{"data":{"policy":"p",  "reward":1},"datacontenttype":"application/json","id":"1","source":"/shop","specversion":"1.0","time":"2026-11-20T10:00:00Z","type":"shop.step"}` + "\n",
			`{"ts":"2026-11-20T10:00:00Z","policy":"p",  "reward":1}` + "\n",
		},
		{"without a content type", message(`{"type":"t","data":{"a":1}}`), `{"data":{"a":1},"type":"t"}` + "\n", `{"a":1}` + "\n"},
		{"base64", message(`{"type":"t","data_base64":"eyJhIjoxfQ=="}`), `{"data":{"a":1},"type":"t"}` + "\n", `{"a":1}` + "\n"},
		{
			"batch", message(`[{"data":{"a":1}},{"data":{"a":2},"time":"2026-11-20T10:00:00Z"}]`, "Content-Type", "application/cloudevents-batch+json"),
			`{"data":{"a":1}}` + "\n" + `{"data":{"a":2},"time":"2026-11-20T10:00:00Z"}` + "\n",
			`{"a":1}` + "\n" + `{"ts":"2026-11-20T10:00:00Z","a":2}` + "\n",
		},
		{"a batch without a content type", message(` [{"data":{"a":1}},{"data":{"a":2}}]`), `{"data":{"a":1}}` + "\n" + `{"data":{"a":2}}` + "\n", `{"a":1}` + "\n" + `{"a":2}` + "\n"},
		{"a batch with a bad one", message(`[{"data":{"a":1}},2]`, "content-type", typeBatch), `{"data":{"a":1}}` + "\n2\n", `{"a":1}` + "\n2\n"},
		{
			"binary", message("{\"a\":\n1}", "ce_specversion", "1.0", "ce_type", "shop\n.step", "ce_time", "2026-11-20T10:00:00Z", "other", "x", "content-type", "application/json"),
			`{"specversion":"1.0","type":"shop\n.step","time":"2026-11-20T10:00:00Z","data":{"a": 1}}` + "\n", `{"ts":"2026-11-20T10:00:00Z","a": 1}` + "\n",
		},
		{"binary as in HTTP", message(`{}`, "ce-specversion", "1.0", "CE-Time", "2026-11-20T10:00:00Z"), `{"specversion":"1.0","time":"2026-11-20T10:00:00Z","data":{}}` + "\n", `{"ts":"2026-11-20T10:00:00Z"}` + "\n"},
		{"unusable time", message(`{"a":1}`, "ce_specversion", "1.0", "ce_time", "yesterday"), `{"specversion":"1.0","time":"yesterday","data":{"a":1}}` + "\n", `{"a":1}` + "\n"},
		{"no object", message(`[1]`, "ce_specversion", "1.0", "ce_time", "2026-11-20T10:00:00Z"), `{"specversion":"1.0","time":"2026-11-20T10:00:00Z","data":[1]}` + "\n", `[1]` + "\n"},
	} {
		for dataOnly, want := range map[bool]string{false: c.whole, true: c.data} {
			got, err := Converter{DataOnly: dataOnly}.Convert([]byte("before\n"), c.m)
			if err != nil || string(got) != "before\n"+want {
				t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, got, want)
			}
		}
	}
}

func TestDataThatIsNotJSON(t *testing.T) {
	for name, m := range map[string]*ingest.Message{
		"binary":     message("\x00\x01", "ce_specversion", "1.0", "content-type", "application/octet-stream"),
		"structured": message(`{"specversion":"1.0","datacontenttype":"application/octet-stream","data_base64":"AAE="}`),
	} {
		got, err := Converter{}.Convert(nil, m)
		var members map[string]string
		if err != nil || json.Unmarshal(got, &members) != nil || members["data_base64"] != "AAE=" {
			t.Errorf("%s: %s %v", name, got, err)
		}
		if _, err := (Converter{DataOnly: true}).Convert(nil, m); err == nil || err.Reason != ingest.ReasonBadEncoding {
			t.Errorf("%s: its data alone: %v", name, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name      string
		converter Converter
		m         *ingest.Message
		reason    ingest.Reason
	}{
		{"nothing", Converter{}, message(""), ingest.ReasonEmptyRecord},
		{"no JSON", Converter{}, message(`{"type":`), ingest.ReasonInvalidJSON},
		{"no object", Converter{}, message(`1`), ingest.ReasonInvalidJSON},
		{"no array", Converter{}, message(`{}`, "content-type", typeBatch), ingest.ReasonInvalidJSON},
		{"Avro", Converter{}, message("\x02", "content-type", "application/avro"), ingest.ReasonBadEncoding},
		{"a batch of one", Converter{}, message(`[2]`, "content-type", typeBatch), ingest.ReasonInvalidJSON},
		{"no base64", Converter{}, message(`{"data_base64":"?"}`), ingest.ReasonBadEncoding},
		{"base64 of no JSON", Converter{}, message(`{"data_base64":"AAE="}`), ingest.ReasonBadEncoding},
		{"data that ends early", Converter{}, message(`1,"type":"other"`, "ce_specversion", "1.0"), ingest.ReasonInvalidJSON},
		{"no data", Converter{DataOnly: true}, message(`{"type":"t"}`), ingest.ReasonEmptyRecord},
	} {
		got, err := c.converter.Convert([]byte("before"), c.m)
		if err == nil || err.Reason != c.reason || err.Size != int64(len(c.m.Value)) || string(got) != "before" {
			t.Errorf("%s: %q %+v, want %s", c.name, got, err, c.reason)
		}
	}
}

// FuzzConvert converts random values with random headers. The output must have one line per event, and be JSON unless
// it is data that the decoder must refuse.
func FuzzConvert(f *testing.F) {
	f.Add([]byte(`{"type":"t","data":{"a":1},"time":"2026-11-20T10:00:00Z"}`), "content-type", typeEvent)
	f.Add([]byte(`[{"data":1},{"data_base64":"MQ=="}]`), "content-type", typeBatch)
	f.Add([]byte("{\n}"), "ce_specversion", "1.0")
	f.Fuzz(func(t *testing.T, value []byte, name, content string) {
		m := message(string(value), name, content)
		original := bytes.Clone(m.Value)
		lines, err := Converter{}.Convert(nil, m)
		if err == nil {
			for line := range bytes.Lines(lines) {
				if !json.Valid(line) {
					t.Errorf("%q is not JSON", line)
				}
			}
		}
		data, err := Converter{DataOnly: true}.Convert(nil, m)
		isBatch := contentType(header(m, "content-type")) == typeBatch || bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte("["))
		if err == nil && !isBatch && bytes.Count(data, []byte("\n")) != 1 {
			t.Errorf("%q has several lines", data)
		}
		if !bytes.Equal(m.Value, original) {
			t.Error("the message was changed")
		}
	})
}
