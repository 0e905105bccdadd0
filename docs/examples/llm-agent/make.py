"""Writes the logs of a support agent in the otlp_json format of the OpenTelemetry Collector's Kafka exporter.

A conversation consists of a few tool calls and a final event. A reward model scores each call. After 900 of 1,200
conversations, it is replaced by one that is stricter with searches and replies.
"""

import json
import random

CONVERSATIONS, SWAPPED = 1200, 900
TOOLS = ["search_docs", "lookup_order", "run_sql", "reply"]
OFTEN = [4, 3, 1, 4]
SCORES = {"search_docs": 0.62, "lookup_order": 0.55, "run_sql": 0.40, "reply": 0.70}
NEW_SCORES = {"search_docs": 0.41, "lookup_order": 0.60, "run_sql": 0.33, "reply": 0.52}
AGENT = {"gen_ai.agent.name": "support-agent", "gen_ai.agent.version": "2026-10-02"}

rng = random.Random(14)


def record(now, conversation, name, attributes):
    attributes = {**AGENT, "gen_ai.conversation.id": conversation, **attributes}
    return {
        "timeUnixNano": str(int(now * 1e9)),
        "eventName": name,
        "attributes": [{"key": key, "value": typed(value)} for key, value in attributes.items()],
    }


def typed(value):
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def talk(start, number):
    """Returns the records of a conversation and its end time."""
    scores = NEW_SCORES if number >= SWAPPED else SCORES
    conversation, now, records = f"conv-{number:05}", start, []
    for tool in rng.choices(TOOLS, OFTEN, k=3 + int(rng.random() * 5)):
        now += 2 + 6 * rng.random()
        score = min(1.0, max(0.0, rng.gauss(scores[tool], 0.15)))
        call = {"gen_ai.tool.name": tool, "gen_ai.evaluation.name": "helpfulness"}
        call["gen_ai.evaluation.score.value"] = round(score, 3)
        records.append(record(now, conversation, "gen_ai.evaluation.result", call))
    records.append(record(now + 1, conversation, "conversation.ended", {"ticket.resolved": rng.random() < 0.8}))
    return records, now + 1


def main():
    resource = {"attributes": [{"key": "deployment.environment.name", "value": {"stringValue": "prod"}}]}
    now = 1793520000.0  # 2026-11-01
    with open("agent-logs.ndjson", "w") as file:
        for number in range(CONVERSATIONS):
            records, now = talk(now + 600 * rng.random(), number)
            scope = {"scope": {"name": "support"}, "logRecords": records}
            request = {"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]}
            file.write(json.dumps(request, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
