"""Reads telemetry v1 from Kafka into detectors of river: what TestThroughput compares the service with.

throughput.py BROKER TOPIC OFFSETS EVENTS reads EVENTS records from the given offset of each partition on, feeds the rewards
of each policy to ADWIN and KSWIN, and prints one JSON object with what that took.
"""

import json
import resource
import sys
import time

import confluent_kafka
import river.drift

broker, topic, offsets, events = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
consumer = confluent_kafka.Consumer(
    {"bootstrap.servers": broker, "group.id": "throughput", "enable.auto.commit": False, "fetch.message.max.bytes": 10 << 20}
)
consumer.assign([confluent_kafka.TopicPartition(topic, p, offset) for p, offset in enumerate(offsets)])

detectors = {}
drifts = read = 0
began, used = time.perf_counter(), time.process_time()
while read < events:
    for message in consumer.consume(num_messages=1000, timeout=10):
        if message.error():
            sys.exit(str(message.error()))
        event = json.loads(message.value())
        read += 1
        reward = event["episode"]["r"] if "episode" in event else event["reward"]
        of_policy = detectors.get(event["policy"])
        if of_policy is None:
            of_policy = detectors[event["policy"]] = (river.drift.ADWIN(), river.drift.KSWIN(seed=1))
        for detector in of_policy:
            detector.update(reward)
            drifts += detector.drift_detected
took, cpu = time.perf_counter() - began, time.process_time() - used
consumer.close()
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
print(json.dumps({"events": read, "cpu_seconds": cpu, "seconds": took, "rss": rss, "drifts": drifts}))
