package consumer_test

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/format"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/registry"
	"github.com/twmb/avro"
)

// Records wait while the registry is unavailable. A poison record and one with an unknown schema become dead letters.
// The records around them, with two versions of the schema, are read.
func TestRecordsOfASchemaRegistry(t *testing.T) {
	const v1 = `{"type":"record","name":"Step","fields":[{"name":"policy","type":"string"},{"name":"reward","type":"double"}]}`
	const v2 = `{"type":"record","name":"Step","fields":[{"name":"reward","type":["null","double"]},{"name":"env","type":"string"},{"name":"policy","type":"string"}]}`
	server := ingesttest.NewSchemaRegistry()
	t.Cleanup(server.Close)
	step := func(id int, schema string) []byte {
		value, err := avro.MustParse(schema).Encode(map[string]any{"policy": "p", "reward": .5, "env": "e"})
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte{0, 0, 0, 0, byte(id)}, value...)
	}
	first, second := server.Put("step", "AVRO", v1), server.Put("step", "AVRO", v2)
	b := newBench(t, 1)
	b.produceValues(0, step(first, v1), []byte("poison"), step(99, v1), step(second, v2), step(first, v1)[:8], step(first, v1))
	topic := format.Topic{Topic: b.cfg.Topic, Format: format.Avro, Schema: format.Schema{Registry: registry.Config{URL: server.URL}}}
	var err error
	if b.format, err = topic.Open(); err != nil {
		t.Fatal(err)
	}
	server.Fail(http.StatusInternalServerError)
	recorder := ingesttest.NewRecorder()
	m := b.joinAs(recorder, b.letters, prometheus.NewPedanticRegistry())
	if err := server.Await(waitContext(t), 2); err != nil {
		t.Fatal(err)
	}
	if m.Count() > 0 || len(b.letters.Kept()) > 0 {
		t.Error("the registry is down, and records are read or refused")
	}
	server.Fail(0)
	m.await("the events", func() bool { return m.Count() == 3 })
	m.stop()
	var offsets, refused []int64
	for _, e := range recorder.Events(0) {
		offsets = append(offsets, e.Pos.Offset)
	}
	reasons := map[int64]ingest.Reason{}
	for _, l := range b.letters.Kept() {
		refused = append(refused, l.Pos.Offset)
		reasons[l.Pos.Offset] = l.Reason
	}
	if len(offsets) != 3 || offsets[0] != 0 || offsets[1] != 3 || offsets[2] != 5 {
		t.Errorf("read the offsets %v", offsets)
	}
	if len(refused) != 3 || reasons[1] != ingest.ReasonBadEncoding || reasons[2] != ingest.ReasonUnknownSchema || reasons[4] != ingest.ReasonBadEncoding {
		t.Errorf("refused %v", reasons)
	}
}
