// Package repartition forwards telemetry to a topic of the service, each event to the partition of its join key. A
// decision and its feedback are then in the same partition, regardless of the keys and partitions of their original
// topics.
//
// With ingest.kafka.repartition_topic, a second consumer reads the telemetry topics and writes to one topic, which the
// first consumer reads:
//
//   - One member of the group has all partitions, and its readers take turns over all of them (Options.Merged;
//     ingest/consumer/topic.go and turn.go).
//   - Each event goes into the queue of a partition of the topic, with a header of its source (source.go, header.go,
//     ingest/kafkalog/queue.go).
//   - A checkpoint of the number waits until all queues have written what it has put (Snapshot in source.go).
//   - When all partitions have been read to their ends, a mark goes to all queues (due in writer.go).
//   - The reader of the topic skips what it has seen, and is at its end only as far as a mark shows (follower.go; Seen
//     and heldNoMore in engine/feed.go).
//
// A queue writes in order, and a checkpoint only covers events that have been written. So an event that is not after
// the newest one of its source is a repetition, and is skipped.
//
// The topic, its number of partitions and the keys may only change if the last checkpoint is whole, which means that
// nothing was written after it (it was saved after ingest.Handler.Ending). Otherwise, events that are written again
// would be in other partitions. A state that was restored from a whole checkpoint is saved again before anything is
// read (ingest.Renewing).
package repartition
