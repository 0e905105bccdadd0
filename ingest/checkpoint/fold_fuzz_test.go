package checkpoint

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

// fuzzLog builds a log from a script. Each byte adds the next record of a real log, any of its records or a tombstone
// for one, or damages or removes a record that was added.
func fuzzLog(whole []kafkalog.Record, script []byte) *memoryLog {
	l, next := newMemoryLog(), 0
	for _, b := range script {
		any := int(b>>3) % len(whole)
		added := int(b>>3) % max(1, len(l.records))
		switch b & 7 {
		case 4:
			l.write(slices.Clone(whole[any : any+1]))
		case 5:
			l.write([]kafkalog.Record{{Key: whole[any].Key}})
		case 6:
			if len(l.records) > 0 {
				l.records[added].Value = append([]byte{b}, l.records[added].Value...)
			}
		case 7:
			if len(l.records) > 0 {
				l.records = slices.Delete(l.records, added, added+1)
			}
		default:
			if next < len(whole) {
				l.write(slices.Clone(whole[next : next+1]))
				next++
			}
		}
	}
	return l
}

// Regardless of the content of a log, a new owner loads the result of one save or gets an error. The tombstones that it
// writes do not change anything for the next owner.
func FuzzFold(f *testing.F) {
	whole, states := fuzzHistory(f)
	all := bytes.Repeat([]byte{0}, len(whole))
	f.Add(all, []byte(nil), []byte(nil))
	f.Add(all[:len(whole)/2], record{epoch: 1, number: 3, kind: kindChunk}.key(scope), []byte("x"))
	f.Add(all, record{epoch: 9, number: 3, kind: kindManifest, name: "bank-a", generation: 1<<64 - 1}.key(scope),
		seal([]byte(`{"format":1,"chunks":[1,1,2],"size":-1}`)))
	f.Add(append(all, 5, 13, 21, 38, 46, 55), record{epoch: 2, kind: kindNote}.key(scope), seal(nil))
	f.Add(append(all, 4, 92, 100), record{epoch: 1<<64 - 1, kind: kindClaim}.key(scope), []byte("never"))
	f.Fuzz(func(t *testing.T, script, key, value []byte) {
		l := fuzzLog(whole, script)
		if len(key) > 0 {
			l.write([]kafkalog.Record{{Key: key, Value: value}})
		}
		keys, twice := map[string]bool{}, false // no owner writes a key twice, and compaction would remove the first record
		for _, r := range l.records {
			twice = twice || keys[string(r.Key)]
			keys[string(r.Key)] = true
		}
		held, err := tryOpen(l)
		if err != nil {
			return
		}
		got, err := openStore(held).Load("bank-a")
		if err == nil && !slices.ContainsFunc(states, func(s ingest.Parts) bool { return maps.EqualFunc(s, got, samePart) }) {
			t.Fatalf("loads %q", got)
		}
		if twice {
			return
		}
		mustPut(t, held, "bank-b", 1, nil)
		l.compact(l.end, never)
		again, err2 := openStore(open(t, l)).Load("bank-a")
		if !maps.EqualFunc(again, got, samePart) || (err == nil) != (err2 == nil) || errors.Is(err, fs.ErrNotExist) != errors.Is(err2, fs.ErrNotExist) {
			t.Errorf("loads %q, %v; the next owner %q, %v", got, err, again, err2)
		}
	})
}

// fuzzHistory returns the records of twoOwners, and the results of their saves.
func fuzzHistory(f *testing.F) (whole []kafkalog.Record, states []ingest.Parts) {
	l, _, _, _ := twoOwners(f)
	for n := range len(l.records) + 1 {
		prefix := l.copied()
		prefix.records = slices.Clone(l.records[:n])
		got, err := openStore(open(f, prefix)).Load("bank-a")
		if err == nil {
			states = append(states, got)
		}
	}
	for _, c := range [][]string{{"y", "zombie"}} { // it counts if the claim that it follows is missing
		state := maps.Clone(states[1])
		maps.Copy(state, parts(c...))
		states = append(states, state)
	}
	return l.records, states
}
