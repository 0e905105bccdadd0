package ingesttest

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Fill sets every exported field of the target of to, except those tagged `cbor:"-"`, to values that all differ. This
// reveals conversions that drop a field or swap two. Slices and maps get two elements. Pointers get a target, unless
// they point to their own type for the second time.
func Fill(to any) {
	f := filler{within: map[reflect.Type]int{}}
	f.fill(reflect.ValueOf(to).Elem())
}

// filler counts the values that it has set, and the pointers on the current path by target type.
type filler struct {
	n      int64
	within map[reflect.Type]int
}

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch into := v.Addr().Interface().(type) {
	case *time.Time:
		*into = time.Unix(f.n, f.n).UTC()
		return
	case *ingest.Group:
		*into = ingest.NewGroup(fmt.Sprint("policy ", f.n), ingest.Label{Name: "env", Value: fmt.Sprint(f.n)})
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		v.SetInt(1 + (f.n-1)%120) // not 0, because the top row of a window would be its only one
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		v.SetUint(uint64(1 + (f.n-1)%120))
	case reflect.Float64, reflect.Float32:
		v.SetFloat(float64(f.n) + .5)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", f.n))
	case reflect.Pointer:
		f.fillPointer(v)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fillAll(v)
	case reflect.Array:
		f.fillAll(v)
	case reflect.Map:
		f.fillMap(v)
	case reflect.Struct:
		f.fillFields(v)
	default:
		panic("no example value is known for type " + v.Type().String() + " with")
	}
}

func (f *filler) fillPointer(v reflect.Value) {
	to := v.Type().Elem()
	if f.within[to] == 2 {
		return
	}
	f.within[to]++
	v.Set(reflect.New(to))
	f.fill(v.Elem())
	f.within[to]--
}

func (f *filler) fillAll(v reflect.Value) {
	for i := range v.Len() {
		f.fill(v.Index(i))
	}
}

func (f *filler) fillFields(v reflect.Value) {
	for i := range v.NumField() {
		if field := v.Type().Field(i); isSaved(&field) && (field.IsExported() || field.Type.Kind() == reflect.Struct) {
			f.fill(v.Field(i))
		}
	}
}

func (f *filler) fillMap(v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	for range 2 {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key)
		f.fill(value)
		v.SetMapIndex(key, value)
	}
}

// Text returns a textual form of all exported fields. It differs if any bit of them differs, whereas == treats NaN as
// unequal to itself and -0 as equal to 0. A nil slice differs from an empty one.
func Text(of any) string {
	var b strings.Builder
	text(&b, reflect.ValueOf(of), "\n")
	return b.String()
}

func text(b *strings.Builder, v reflect.Value, line string) {
	if v.IsValid() && v.CanInterface() {
		if m, own := v.Interface().(encoding.BinaryMarshaler); own && v.Kind() == reflect.Struct {
			own, err := m.MarshalBinary()
			fmt.Fprintf(b, "%q %v", own, err)
			return
		}
	}
	switch v.Kind() {
	case reflect.Float64, reflect.Float32:
		fmt.Fprintf(b, "%v %x", v.Float(), math.Float64bits(v.Float()))
	case reflect.Pointer:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		text(b, v.Elem(), line)
	case reflect.Slice, reflect.Array:
		fmt.Fprint(b, v.Len(), " of ", v.Type().Elem())
		if v.Kind() == reflect.Slice && v.IsNil() {
			b.WriteString(", nil")
		}
		for i := range v.Len() {
			text(b, v.Index(i), entry(b, line, i))
		}
	case reflect.Map:
		fmt.Fprint(b, v.Len(), " by ", v.Type().Key())
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
		for _, key := range keys {
			text(b, v.MapIndex(key), entry(b, line, key))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); isSaved(&field) {
				text(b, v.Field(i), entry(b, line, field.Name))
			}
		}
	default:
		fmt.Fprintf(b, "%#v", v)
	}
}

// entry writes the start of the line for an element, and returns the prefix of the lines below it.
func entry(b *strings.Builder, line string, name any) string {
	line += "  "
	fmt.Fprint(b, line, name, ": ")
	return line
}

// isSaved reports whether snapshots must include a field. These are the exported and embedded fields, unless excluded
// by a tag.
func isSaved(f *reflect.StructField) bool {
	return (f.IsExported() || f.Anonymous) && f.Tag.Get("cbor") != "-"
}
