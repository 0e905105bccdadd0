package versions

import "github.com/rewardwatch/rewardwatch/ingest/saved"

type seenWire struct {
	Value string `cbor:"1,keyasint,omitzero"`
	Last  int64  `cbor:"2,keyasint,omitzero"`
}

type trackWire struct {
	Value   string     `cbor:"1,keyasint,omitzero"`
	Since   int64      `cbor:"2,keyasint,omitzero"`
	Before  string     `cbor:"3,keyasint,omitzero"`
	Recent  []seenWire `cbor:"4,keyasint,omitzero"`
	Changes []int64    `cbor:"5,keyasint,omitzero"`
}

func (x *Track) wire() trackWire {
	return trackWire{
		Value: x.Value, Since: x.Since, Before: x.Before,
		Recent:  saved.Each(x.Recent, func(e Seen) seenWire { return seenWire(e) }),
		Changes: x.Changes,
	}
}

func (w *trackWire) live() Track {
	return Track{
		Value: w.Value, Since: w.Since, Before: w.Before,
		Recent:  saved.Each(w.Recent, func(e seenWire) Seen { return Seen(e) }),
		Changes: w.Changes,
	}
}

// RecordWire is the saved form of a Record. Field numbers are never reused.
type RecordWire struct {
	Policy  trackWire `cbor:"1,keyasint"`
	Env     trackWire `cbor:"2,keyasint"`
	Reward  trackWire `cbor:"3,keyasint"`
	SinceTS int64     `cbor:"4,keyasint,omitzero"`
}

// Wire returns the saved form.
func (x *Record) Wire() RecordWire {
	return RecordWire{
		Policy: x.Policy.wire(), Env: x.Env.wire(), Reward: x.Reward.wire(), SinceTS: x.SinceTS,
	}
}

// Live returns the record of a saved form.
func (w *RecordWire) Live() Record {
	return Record{
		Policy: w.Policy.live(), Env: w.Env.live(), Reward: w.Reward.live(), SinceTS: w.SinceTS,
	}
}
