package ingest

import "strconv"

// Reason says why a record was refused. It is the label `reason` of the metrics and stands in the dead letter.
type Reason string

// The reasons for refusing a record. The first fault found in reading order is the one reported.
const (
	ReasonInvalidJSON   Reason = "invalid_json"    // not JSON by RFC 8259, or something stands behind the object
	ReasonInvalidUTF8   Reason = "invalid_utf8"    // not UTF-8, or half of a surrogate pair in an escape
	ReasonTooDeep       Reason = "too_deep"        // nested deeper than MaxDepth
	ReasonTooLarge      Reason = "too_large"       // longer than the record limit; not parsed at all
	ReasonTooManyValues Reason = "too_many_values" // more than MaxValues numbers or MaxLabels labels
	ReasonStringTooLong Reason = "string_too_long" // a name, id, category or label of more than MaxString bytes
	ReasonNUL           Reason = "nul_character"   // \u0000 in a name, id, category or label
	ReasonWrongType     Reason = "wrong_type"      // a field holds another type than telemetry v1 gives it
	ReasonOutOfRange    Reason = "out_of_range"    // a step or a length that is negative or does not fit 64 bits
	ReasonBadTimestamp  Reason = "bad_timestamp"   // neither RFC 3339 nor a Unix time of the years 1970 to 2262
	ReasonMissingPolicy Reason = "missing_policy"  // no policy, or an empty one
	ReasonMissingReturn Reason = "missing_return"  // an episode without r
	ReasonEmptyRecord   Reason = "empty_record"    // none of reward, action, outcomes and episode
	ReasonBadHeader     Reason = "bad_header"      // a monitor.csv header that cannot be read, and each row below it
	ReasonWrongColumns  Reason = "wrong_columns"   // a monitor.csv row with more or fewer columns than its header
	ReasonTruncated     Reason = "truncated"       // the rest of a record whose input broke off
)

// Reasons gives every reason, for metrics that show each of them from the start.
func Reasons() []Reason {
	return []Reason{
		ReasonInvalidJSON, ReasonInvalidUTF8, ReasonTooDeep, ReasonTooLarge, ReasonTooManyValues, ReasonStringTooLong,
		ReasonNUL, ReasonWrongType, ReasonOutOfRange, ReasonBadTimestamp, ReasonMissingPolicy, ReasonMissingReturn,
		ReasonEmptyRecord, ReasonBadHeader, ReasonWrongColumns, ReasonTruncated,
	}
}

// RecordError says why a record was refused and where.
type RecordError struct {
	Pos    Position
	Reason Reason
	Column int    // byte of the record at which the fault was found, from 1; 0 where it has no single place
	Size   int64  // bytes of the whole record, of which the raw bytes handed on may be only the beginning
	Msg    string // the fault in words
}

// Error gives the place, the reason and the fault in words.
func (e *RecordError) Error() string {
	place := "record " + e.Pos.String()
	if e.Column > 0 {
		place += ", column " + strconv.Itoa(e.Column)
	}
	return place + ": " + string(e.Reason) + ": " + e.Msg
}
