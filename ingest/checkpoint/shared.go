package checkpoint

import (
	"context"

	"github.com/rewardwatch/rewardwatch/ingest"
)

var _ ingest.Stores = Shared{}

// Shared serves all partitions from one store, for a process that does not share its checkpoints.
type Shared struct{ *Store }

// Open implements ingest.Stores.
func (s Shared) Open(context.Context, string, int32, func() error) (ingest.CheckpointStore, error) {
	return s.Store, nil
}
