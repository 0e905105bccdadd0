package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// quoteSchema has nested records and unions.
const quoteSchema = `{"type":"record","name":"Quote","fields":[
 {"name":"evt","type":{"type":"record","name":"Evt","fields":[{"name":"uuid","type":"string"},{"name":"occurredAt","type":{"type":"long","logicalType":"timestamp-micros"}}]}},
 {"name":"engine","type":{"type":"record","name":"Engine","fields":[{"name":"strategy","type":"string"},{"name":"rev","type":["null","string"]}]}},
 {"name":"offer","type":["null",{"type":"record","name":"Offer","fields":[{"name":"tier","type":{"type":"enum","name":"Tier","symbols":["LOW","MID","HIGH"]}},{"name":"discountPct","type":"double"}]}]},
 {"name":"profit","type":["null","double"]}]}`

// fourths returns shapes that were written after the proposals had worked for all others, with field names as in other
// cultures. At first, several were not joined: those with three topics, with types that have separate ends, with tool
// calls, with batches, with numbers as text, and with steps in another language.
func fourths() []team {
	pick := func(w *world, of ...string) string { return of[w.IntN(len(of))] }
	chance := func(drifted bool, before, after float64) float64 {
		if drifted {
			return after
		}
		return before
	}
	return []team{
		{
			name: "Spanish: decisions, clicks and purchases in three topics, amounts as text", n: 9000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				id := fmt.Sprintf("dcs-%x", w.Uint64())
				if w.Float64() < chance(drifted, .3, .12) {
					d := w.soon(20)
					w.after(i, d, message{topic: "clics", value: js(object{"decision": object{"idDecision": id}, "instante": at.Add(time.Duration(d) * time.Second).UnixMilli(), "accion": "clic"})})
					if w.Float64() < .2 {
						w.after(i, d+9, message{topic: "compras", value: js(object{"idDecision": id, "instante": at.Add(time.Duration(d+9) * time.Second).UnixMilli(), "importe": fmt.Sprintf("%.2f", 9+50*w.Float64())})})
					}
				}
				return []message{{topic: "decisiones", at: at, value: js(object{
					"idDecision": id, "momento": at.UnixMilli(), "motor": object{"revision": "2026.3"}, "cliente": object{"codigo": fmt.Sprint("C", w.IntN(900))},
					"ofertaElegida": pick(w, "descuento10", "envioGratis", "dosPorUno"), "contexto": object{"antiguedad": w.IntN(900), "gasto": fmt.Sprintf("%.2f", 90*w.Float64())},
				})}}
			},
		},
		{
			name: "German: a run a message, its steps two objects deep, microseconds", n: 4000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				var steps []object
				for k := range 5 + w.IntN(5) {
					steps = append(steps, object{
						"nr": k, "zeit_us": at.Add(time.Duration(k) * time.Millisecond).UnixMicro(), "beobachtung": object{"kraft": w.NormFloat64()},
						"aktion": pick(w, "greifen", "drehen", "ablegen"), "belohnung": chance(drifted, .5, .3) + .4*w.NormFloat64(),
					})
				}
				return []message{{topic: "laeufe", at: at, value: js(object{"lauf": object{"kennung": fmt.Sprint("L-", i), "roboter": fmt.Sprint("R", i%6), "strategie": "greifer-v3", "abbruch": nil, "schritte": steps}})}}
			},
		},
		{
			name: "sessions whose records are of four types, the last of which ends them", n: 12_000, signal: "return",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				record := func(of string, d object) message {
					return message{topic: "npc", at: at, value: js(object{"evt": of, "tsu": at.UnixMicro(), "u": fmt.Sprint("p", i/10%90), "sid": fmt.Sprint("g", i/10), "mdl": "brain_4", "d": d})}
				}
				switch i % 10 {
				case 0:
					return []message{record("SESS_START", object{"map": pick(w, "ice", "lava")}), {topic: "npc", at: at, value: js(object{"evt": "BEAT", "tsu": at.UnixMicro(), "host": "s1"})}}
				case 9:
					return []message{record("SESS_END", object{"win": w.Float64() < .6, "why": nil})}
				}
				return []message{record("STEP", object{"k": i % 10, "act": w.IntN(4), "rwd": chance(drifted, 1, .7) + .8*w.NormFloat64(), "hp": w.IntN(100)})}
			},
		},
		{
			name: "OpenTelemetry: tool calls, and the evaluation that ends their conversation", n: 12_000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				a := object{"gen_ai.conversation.id": fmt.Sprint("conv-", i/4), "gen_ai.agent.name": "claims-bot"}
				if i%4 == 3 {
					a["gen_ai.evaluation.name"], a["gen_ai.evaluation.score.value"] = "helpfulness", chance(drifted, .7, .6)+.12*w.NormFloat64()
					return []message{{topic: "agent-logs", at: at, value: logs("claims", at, "gen_ai.evaluation.result", a)}}
				}
				a["gen_ai.tool.name"], a["gen_ai.usage.output_tokens"] = pick(w, "search", "db", "mail"), w.IntN(400)
				return []message{{topic: "agent-logs", at: at, value: logs("claims", at, "gen_ai.tool.call", a)}}
			},
		},
		{
			name: "batches of CloudEvents, without agents or episodes", n: 900, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				var batch []object
				for k := range 10 {
					batch = append(batch, object{
						"specversion": "1.0", "type": "shop.quoted", "source": "/pricing", "id": fmt.Sprint("e", i*10+k), "time": at.Add(time.Duration(k) * time.Millisecond).Format(time.RFC3339Nano),
						"data": object{"quoteRef": fmt.Sprint("q", i*10+k), "priceRule": pick(w, "cheap", "match", "premium"), "result": object{"accepted": w.Float64() < chance(drifted, .4, .25), "marginEur": w.NormFloat64()}},
					})
				}
				return []message{{topic: "quotes", at: at, value: js(batch)}}
			},
		},
		{
			name: "transitions with numbers as text, seconds with fractions", n: 12_000, signal: "return",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				r := strconv.FormatFloat(chance(drifted, .3, .1)+.4*w.NormFloat64(), 'f', 4, 64)
				return []message{{topic: "rollouts", at: at, value: js(object{
					"worker": fmt.Sprint("w", i/10%8), "ep": i / 10, "k": i % 10, "wallclock": float64(at.UnixMilli()) / 1000,
					"transition": object{"o": []float64{w.NormFloat64()}, "a": w.IntN(3), "r": r, "done": i%10 == 9}, "algo": "ppo",
				})}}
			},
		},
		{
			name: "clicks that do not say which model they are about, and a new model before the drift", n: 9000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				id := fmt.Sprint("rq", i)
				if w.Float64() < chance(drifted, .25, .1) {
					d := w.soon(20)
					w.after(i, d, message{topic: "taps", value: js(object{"kind": "tap", "at": at.Add(time.Duration(d) * time.Second).Format(time.RFC3339), "req": id})})
				}
				return []message{{topic: "recs", at: at, value: js(object{"kind": "rec", "at": at.Format(time.RFC3339), "req": id, "model": fmt.Sprint("v", 1+i/4500), "pick": pick(w, "a", "b", "c")})}}
			},
		},
		{
			name: "Avro with records in records and unions", n: 9000, signal: "reward",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				return []message{{topic: "quotes-avro", at: at, value: w.framed("Quote", quoteSchema, object{
					"evt": object{"uuid": fmt.Sprintf("%016x", w.Uint64()), "occurredAt": at}, "engine": object{"strategy": "margin", "rev": object{"string": "7"}},
					"offer": object{"Offer": object{"tier": pick(w, "LOW", "MID", "HIGH"), "discountPct": w.Float64()}}, "profit": object{"double": chance(drifted, 2, 1.7) + w.NormFloat64()},
				})}}
			},
		},
		{
			name: "French: calls and their results, a number of which drifts and not the yes or no", n: 9000, signal: "outcome.satisfaction",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				id := fmt.Sprintf("AP%011x", w.Uint64()>>20)
				if w.Float64() < .88 {
					d := w.soon(20)
					w.after(i, d, message{topic: "resultats", value: js(object{
						"numero_appel": id, "fin": at.Add(time.Duration(d) * time.Second).Format(time.RFC3339), "satisfaction": chance(drifted, 7.2, 5.8) + 1.4*w.NormFloat64(),
						"resolu": w.Float64() < .7, "conseiller": fmt.Sprint("ag", w.IntN(60)), "commentaire": nil,
					})})
				}
				return []message{{topic: "routages", at: at, value: js(object{
					"horodatage": at.Format(time.RFC3339), "appel": object{"numero": id, "motif": pick(w, "facture", "panne", "contrat")}, "modele": "aiguilleur-v5",
					"equipe_choisie": pick(w, "niveau1", "niveau2", "rappel"), "client": object{"vip": w.Float64() < .1}, "attente_estimee": 60 * w.ExpFloat64(),
				})}}
			},
		},
		{
			name: "picks of robots with lists and an error now and then, among poses", n: 9000, signal: "outcome.grip_quality",
			record: func(w *world, i int, at time.Time, drifted bool) []message {
				stamp, unit := float64(at.UnixMilli())/1000, object{"serial": fmt.Sprint("AMR-", w.IntN(12)), "fw": "4.11.2"}
				if i%10 == 0 {
					return []message{{topic: "picks", at: at, value: js(object{"hdr": object{"stamp": stamp, "node": "localizer"}, "unit": unit, "pose": []float64{1, 2, w.NormFloat64()}})}}
				}
				outcome := object{"grip_quality": chance(drifted, .7, .55) + .15*w.NormFloat64(), "dropped": w.Float64() < .04, "error": nil}
				if w.IntN(30) == 0 {
					outcome["error"] = "E_VAC_LOW"
				}
				return []message{{topic: "picks", at: at, value: js(object{
					"hdr": object{"stamp": stamp, "node": "planner"}, "unit": unit, "order": object{"no": fmt.Sprint("WO", i), "sku": fmt.Sprintf("%07d", w.IntN(1e7)), "lines": []object{{"qty": 1}}},
					"plan": object{"picked": pick(w, "suction", "pinch", "scoop")}, "joints": object{"torque": []float64{w.NormFloat64(), w.NormFloat64()}}, "outcome": outcome,
				})}}
			},
		},
	}
}

// The same test for shapes of other cultures, in the form that a team would first think of.
func TestSimTeamsOfOtherCulturesJoinAsInspectProposes(t *testing.T) {
	for _, team := range append(fourths(), protobufTeam(t)) {
		t.Run(team.name, func(t *testing.T) { testTeam(t, team) })
	}
}

// protobufTeam returns a Protobuf shape whose schema is in a descriptor set.
func protobufTeam(t *testing.T) team {
	t.Helper()
	const source = `syntax = "proto3"; package depot;
message Move { string mission = 1; int64 at_ms = 2; Truck truck = 3; Choice choice = 4; optional double gain = 5; bool last = 6; }
message Truck { string unit = 1; double load = 2; }
enum Choice { WAIT = 0; LEFT = 1; RIGHT = 2; }`
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{"move.proto": source})}}
	files, err := compiler.Compile(context.Background(), "move.proto")
	if err != nil {
		t.Fatal(err)
	}
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(files[0])}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "moves.pb")
	if err := os.WriteFile(path, set, 0o600); err != nil {
		t.Fatal(err)
	}
	of := files[0].Messages().ByName("Move")
	field := func(name protoreflect.Name) protoreflect.FieldDescriptor { return of.Fields().ByName(name) }
	return team{
		name: "Protobuf by a descriptor set", n: 12_000, signal: "return",
		topics: fmt.Sprintf("{topic: moves, format: protobuf, schema: {descriptor_set: %q, message: depot.Move}}", path),
		record: func(w *world, i int, at time.Time, drifted bool) []message {
			gain := 1 + .8*w.NormFloat64()
			if drifted {
				gain -= .3
			}
			m := dynamicpb.NewMessage(of)
			m.Set(field("mission"), protoreflect.ValueOfString(fmt.Sprint("m", i/10)))
			m.Set(field("at_ms"), protoreflect.ValueOfInt64(at.UnixMilli()))
			m.Set(field("choice"), protoreflect.ValueOfEnum(protoreflect.EnumNumber(w.IntN(3))))
			m.Set(field("gain"), protoreflect.ValueOfFloat64(gain))
			m.Set(field("last"), protoreflect.ValueOfBool(i%10 == 9))
			truck := m.Mutable(field("truck")).Message()
			truck.Set(truck.Descriptor().Fields().ByName("unit"), protoreflect.ValueOfString(fmt.Sprint("t", i/10%5)))
			text, err := proto.Marshal(m)
			if err != nil {
				panic(err)
			}
			return []message{{topic: "moves", at: at, value: text}}
		},
	}
}
