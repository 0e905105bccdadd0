// Package repartition forwards telemetry to a topic of the service, each event to the partition of its join key. So a
// decision and its feedback meet in one partition, however the topics that they come from are keyed and partitioned.
//
// With ingest.kafka.repartition_topic, a second consumer reads the topics of the telemetry and writes one topic, which
// the first consumer reads:
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
// A queue writes in order, and a checkpoint is of what is written. So an event that is not after the newest one of its
// source is a repetition, and is skipped.
//
// Events may only be written again to as many partitions of the same topic, by the same keys, unless the last checkpoint
// is whole: it records that nothing was written after it (ingest.Handler.Ending comes before it). A state restored from
// one is saved before anything is read (ingest.Renewing).
package repartition
