package ingest

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/fxamacker/cbor/v2"
)

// State is written as CBOR: floats keep their bits, NaN and infinities too, times their nanoseconds, and texts that are not
// UTF-8 their bytes. What a type looks like is found out once in a process, and not for every part.
var (
	stateEncoding = must(cbor.EncOptions{
		NaNConvert: cbor.NaNConvertNone, InfConvert: cbor.InfConvertNone, Time: cbor.TimeRFC3339Nano,
	}.EncMode())
	stateDecoding = must(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive, UTF8: cbor.UTF8DecodeInvalid,
		IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		MaxArrayElements: math.MaxInt32, MaxMapPairs: math.MaxInt32,
	}.DecMode())
)

func must[T any](mode T, err error) T {
	if err != nil {
		panic(err) // the options above contradict one another
	}
	return mode
}

// EncodeState gives the exported fields of state, behind a byte that says by which version of its format.
func EncodeState(version byte, state any) ([]byte, error) {
	body, err := stateEncoding.Marshal(state)
	return append([]byte{version}, body...), err
}

// WriteState writes what EncodeState gives.
func WriteState(w io.Writer, version byte, state any) error {
	part, err := EncodeState(version, state)
	if err == nil {
		_, err = w.Write(part)
	}
	return err
}

// ReadState reads what WriteState wrote, as DecodeState does. Nothing may follow it.
func ReadState(r io.Reader, version byte, into any) error {
	part, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return DecodeState(part, version, into)
}

// DecodeState reads what EncodeState wrote with the same version. Every other part is refused, one that is cut short too.
func DecodeState(part []byte, version byte, into any) error {
	switch {
	case len(part) == 0:
		return errors.New("it is missing")
	case part[0] != version:
		return fmt.Errorf("it is not of format %d, which this build reads; start the build that wrote it, or move the checkpoint away", version)
	}
	return stateDecoding.Unmarshal(part[1:], into)
}
