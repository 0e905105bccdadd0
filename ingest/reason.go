package ingest

import (
	"fmt"
	"strconv"
)

// Reason is why a record was refused. It is the label `reason` of the metrics and part of the dead letter.
type Reason string

// The reasons for refusing a record. The first fault in reading order is reported.
const (
	ReasonInvalidJSON   Reason = "invalid_json"    // not JSON by RFC 8259, or something follows the object
	ReasonInvalidUTF8   Reason = "invalid_utf8"    // not UTF-8, or half of a surrogate pair in an escape
	ReasonTooDeep       Reason = "too_deep"        // nested deeper than MaxDepth
	ReasonTooLarge      Reason = "too_large"       // longer than the record limit; not parsed at all
	ReasonTooManyValues Reason = "too_many_values" // more than MaxValues numbers or MaxLabels labels
	ReasonStringTooLong Reason = "string_too_long" // a name, id, category or label of more than MaxString bytes
	ReasonNUL           Reason = "nul_character"   // \u0000 in a name, id, category or label
	ReasonWrongType     Reason = "wrong_type"      // a field has another type than in telemetry v1
	ReasonOutOfRange    Reason = "out_of_range"    // a step or a length that is negative or does not fit 64 bits
	ReasonBadTimestamp  Reason = "bad_timestamp"   // not an RFC 3339 time or a Unix time between 1970 and 2262
	ReasonMissingPolicy Reason = "missing_policy"  // no policy, or an empty one
	ReasonMissingReturn Reason = "missing_return"  // an episode without r
	ReasonEmptyRecord   Reason = "empty_record"    // has none of reward, action, outcomes and episode
	ReasonBadHeader     Reason = "bad_header"      // an unreadable monitor.csv header, and every row below it
	ReasonWrongColumns  Reason = "wrong_columns"   // a CSV row with more or fewer columns than the header, or mapped columns of different lengths
	ReasonBadExpression Reason = "bad_expression"  // an expression of the mapping fails on the record
	ReasonTruncated     Reason = "truncated"       // the input ended inside the record
	ReasonBadEncoding   Reason = "bad_encoding"    // not in the topic's format, such as Protobuf or Avro
	ReasonUnknownSchema Reason = "unknown_schema"  // the schema registry has no usable schema for it
	ReasonOtherTenant   Reason = "other_tenant"    // its policy name belongs to a tenant, but its topic or labels do not
)

// Reasons returns every reason, so that metrics can start with a series for each.
func Reasons() []Reason {
	return []Reason{
		ReasonInvalidJSON, ReasonInvalidUTF8, ReasonTooDeep, ReasonTooLarge, ReasonTooManyValues, ReasonStringTooLong,
		ReasonNUL, ReasonWrongType, ReasonOutOfRange, ReasonBadTimestamp, ReasonMissingPolicy, ReasonMissingReturn,
		ReasonEmptyRecord, ReasonBadHeader, ReasonWrongColumns, ReasonBadExpression, ReasonTruncated,
		ReasonBadEncoding, ReasonUnknownSchema, ReasonOtherTenant,
	}
}

// RecordError describes a refused record.
type RecordError struct {
	Pos    Position
	Reason Reason
	Column int    // byte of the fault within the record, from 1; 0 if there is no single such byte
	Size   int64  // bytes of the whole record, of which the reported bytes may be only the beginning
	Msg    string // describes the fault
}

// Error returns the position, the reason and a description of the fault.
func (e *RecordError) Error() string {
	place := "record " + e.Pos.String()
	if e.Column > 0 {
		place += ", column " + strconv.Itoa(e.Column)
	}
	return place + ": " + string(e.Reason) + ": " + e.Msg
}

// TooLarge returns the RecordError for a record that was too large to be read into memory.
func TooLarge(pos Position, size int64, limit int) *RecordError {
	return &RecordError{
		Pos: pos, Reason: ReasonTooLarge, Size: size, Msg: fmt.Sprintf("%d bytes exceed the limit of %d", size, limit),
	}
}

// MaxDeadLetterRaw is the maximum number of bytes of a refused record that are kept.
const MaxDeadLetterRaw = 64 << 10
