package saved

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// Named is the Migration for parts whose fields had names, from builds before fields had numbers. The fields of the
// wire form have their old names, or a tag `was` with the old name. A struct that was encoded as a list of fields must
// begin with those fields in the old order. Embedded structs are read as their fields.
func Named[Wire any](body []byte) (*Wire, error) {
	wire := new(Wire)
	return wire, named(body, reflect.ValueOf(wire).Elem())
}

// The major type of a CBOR item is in the first three bits.
const (
	itemKind   = 0xe0
	itemNumber = 0x00
	itemList   = 0x80
	itemNull   = 0xf6
)

func named(item []byte, into reflect.Value) error {
	switch {
	case len(item) == 0:
		return fmt.Errorf("missing %s", into.Type())
	case !holdsFields(into.Type()) || item[0] == itemNull:
		return decodeMode.Unmarshal(item, into.Addr().Interface())
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return named(item, into.Elem())
	case reflect.Slice:
		return namedList(item, into)
	case reflect.Map:
		return namedMap(item, into)
	}
	switch {
	case item[0]&itemKind == itemList:
		return listedFields(item, into)
	case hasNumbers(item):
		return decodeMode.Unmarshal(item, into.Addr().Interface())
	}
	return namedFields(item, into)
}

// hasNumbers reports whether the first key of a map is a number, which means that its fields already had numbers. The
// key follows the length of the map, which takes extra bytes from 24 entries on.
func hasNumbers(item []byte) bool {
	key := 1
	if size := item[0] &^ itemKind; size >= 24 && size <= 27 {
		key += 1 << (size - 24)
	}
	return len(item) > key && item[key]&itemKind == itemNumber
}

// holdsFields reports whether values of a type are, or contain, structs whose fields now have numbers.
func holdsFields(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.BinaryUnmarshaler]()) {
		return false
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return holdsFields(t.Elem())
	case reflect.Struct:
		return t != reflect.TypeFor[time.Time]()
	}
	return false
}

func namedList(item []byte, into reflect.Value) error {
	var items []cbor.RawMessage
	if err := decodeMode.Unmarshal(item, &items); err != nil {
		return err
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	for i, item := range items {
		if err := named(item, into.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func namedMap(item []byte, into reflect.Value) error {
	items := reflect.New(reflect.MapOf(into.Type().Key(), reflect.TypeFor[cbor.RawMessage]()))
	if err := decodeMode.Unmarshal(item, items.Interface()); err != nil {
		return err
	}
	into.Set(reflect.MakeMap(into.Type()))
	for _, key := range items.Elem().MapKeys() {
		value := reflect.New(into.Type().Elem()).Elem()
		if err := named(items.Elem().MapIndex(key).Bytes(), value); err != nil {
			return err
		}
		into.SetMapIndex(key, value)
	}
	return nil
}

// LeavesOut is implemented by wire forms that omit some fields of their named form. Named skips these fields.
type LeavesOut interface{ LeftOut() []string }

func namedFields(item []byte, into reflect.Value) error {
	var items map[string]cbor.RawMessage
	if err := decodeMode.Unmarshal(item, &items); err != nil {
		return err
	}
	for _, field := range fieldsOf(into) {
		if item, has := items[field.name]; has {
			if err := named(item, field.value); err != nil {
				return fmt.Errorf("%s: %w", field.name, err)
			}
			delete(items, field.name)
		}
	}
	left, _ := into.Addr().Interface().(LeavesOut)
	for name := range items {
		if left == nil || !slices.Contains(left.LeftOut(), name) {
			return fmt.Errorf("%s has no field %q", into.Type(), name)
		}
	}
	return nil
}

func listedFields(item []byte, into reflect.Value) error {
	var items []cbor.RawMessage
	if err := decodeMode.Unmarshal(item, &items); err != nil {
		return err
	}
	fields := fieldsOf(into)
	if len(items) > len(fields) {
		return fmt.Errorf("%s has %d fields instead of %d", into.Type(), len(fields), len(items))
	}
	for i, item := range items {
		if err := named(item, fields[i].value); err != nil {
			return fmt.Errorf("%s: %w", fields[i].name, err)
		}
	}
	return nil
}

type fieldOf struct {
	name  string
	value reflect.Value
}

// fieldsOf returns the fields of a struct. Embedded structs are replaced by their fields.
func fieldsOf(v reflect.Value) (fields []fieldOf) {
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case f.Anonymous:
			fields = append(fields, fieldsOf(v.Field(i))...)
		case f.IsExported():
			fields = append(fields, fieldOf{cmp.Or(f.Tag.Get("was"), f.Name), v.Field(i)})
		}
	}
	return fields
}
