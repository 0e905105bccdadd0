package experience

import (
	"io"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/snappy"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// row is a step in Parquet. Optional columns are null if the telemetry says nothing.
//
// It is large because it has a field for each column of the file.
type row struct {
	Data                 string             `parquet:"data,dict"`
	Episode              int64              `parquet:"episode"`
	EpisodeComplete      bool               `parquet:"episode_complete"`
	Index                int64              `parquet:"index"`
	Policy               string             `parquet:"policy,dict"`
	PolicyVersion        *string            `parquet:"policy_version,optional,dict"`
	Env                  *string            `parquet:"env,optional,dict"`
	EnvVersion           *string            `parquet:"env_version,optional,dict"`
	RewardVersion        *string            `parquet:"reward_version,optional,dict"`
	Labels               map[string]string  `parquet:"labels,optional"`
	AgentID              *string            `parquet:"agent_id,optional,dict"`
	EpisodeID            *string            `parquet:"episode_id,optional,dict"`
	Step                 *int64             `parquet:"step,optional"`
	TS                   *time.Time         `parquet:"ts,optional,timestamp(nanosecond)"`
	Observation          []float64          `parquet:"observation,optional,list"`
	ObservationNamed     map[string]float64 `parquet:"observation_named,optional"`
	Action               []float64          `parquet:"action,optional,list"`
	ActionCategory       *string            `parquet:"action_category,optional,dict"`
	ActionProb           *float64           `parquet:"action_prob,optional"`
	Reward               *float64           `parquet:"reward,optional"`
	RewardComponents     map[string]float64 `parquet:"reward_components,optional"`
	NextObservation      []float64          `parquet:"next_observation,optional,list"`
	NextObservationNamed map[string]float64 `parquet:"next_observation_named,optional"`
	Terminated           bool               `parquet:"terminated"`
	Truncated            bool               `parquet:"truncated"`
	Outcomes             map[string]float64 `parquet:"outcomes,optional"`
	Partition            int32              `parquet:"partition"`
	Offset               int64              `parquet:"offset"`
	Record               int32              `parquet:"record"`
}

// A row group is built in memory, up to this many rows or bytes of their strings.
const (
	maxGroupRows  = 50_000
	maxGroupBytes = 16 << 20
)

// parquetFile writes one step per row.
type parquetFile struct {
	writer            *parquet.GenericWriter[row]
	rows, bytes       int // of the row group
	maxRows, maxBytes int
}

// NewParquet returns a Writer of a Parquet file with Snappy compression.
func NewParquet(w io.Writer) Writer {
	writer := parquet.NewGenericWriter[row](w, parquet.Compression(&snappy.Codec{}))
	return &parquetFile{writer: writer, maxRows: maxGroupRows, maxBytes: maxGroupBytes}
}

// Write implements Writer.
func (p *parquetFile) Write(s *Step) error {
	r := row{
		Data: s.Data, Episode: s.Episode, EpisodeComplete: s.Complete, Index: s.Index,
		Policy: s.Policy, PolicyVersion: text(s.Versions.Policy), Env: text(s.Env), EnvVersion: text(s.Versions.Env),
		RewardVersion: text(s.Versions.Reward), Labels: labelsOf(s.Labels), AgentID: text(s.AgentID), EpisodeID: text(s.EpisodeID),
		Step: s.counted(), TS: s.time(), Action: s.Values, ActionCategory: text(s.Category),
		Reward: s.Reward, RewardComponents: valuesOf[float64](s.RewardComponents),
		Terminated: s.Terminated, Truncated: s.Truncated, Outcomes: valuesOf[float64](s.Outcomes),
		Partition: s.Pos.Partition.Number(), Offset: s.Pos.Offset, Record: s.Pos.Record,
	}
	if err := r.takeNumbers(&s.AsRecorded); err != nil {
		return err
	}
	if _, err := p.writer.Write([]row{r}); err != nil {
		return err
	}
	p.rows++
	p.bytes += len(s.Observation) + len(s.NextObservation) + len(s.Action)
	if p.rows < p.maxRows && p.bytes < p.maxBytes {
		return nil
	}
	p.rows, p.bytes = 0, 0
	return p.writer.Flush()
}

func (r *row) takeNumbers(recorded *ingest.AsRecorded) (err error) {
	if r.Observation, r.ObservationNamed, err = numbersOf(recorded.Observation); err != nil {
		return err
	}
	if r.NextObservation, r.NextObservationNamed, err = numbersOf(recorded.NextObservation); err != nil {
		return err
	}
	prob, _, err := numbersOf(recorded.ActionProb)
	if len(prob) == 1 {
		r.ActionProb = &prob[0]
	}
	return err
}

// Close implements Writer.
func (p *parquetFile) Close() error { return p.writer.Close() }
