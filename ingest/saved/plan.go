package saved

import (
	"encoding"
	"encoding/binary"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/fxamacker/cbor/v2"
)

// A plan reads the CBOR encoding of one Go type into zeroed memory of that type. It reads what Encode writes, and
// returns false for anything else: unknown fields, repeated keys, and anything damaged or unusual. The general decoder
// then reads the part again, and decides whether it is valid. So a plan may be incomplete, but if it returns true, its
// result must be the same as that of the general decoder.
//
// A plan knows the offsets of fields, and needs no reflection for individual values. This halves the time for most
// parts. A large fleet has several hundred thousand of them to read at a restart.
type plan struct {
	read func(in *input, into unsafe.Pointer) bool
}

// Planned reads a part with the plan for its type. If whole is true, wire is the same as the result of General.
func Planned[Wire any](body []byte) (wire *Wire, whole bool) {
	words := knownWords.Get().(*[wordSlots]string)
	defer knownWords.Put(words)
	in := input{data: body, words: words}
	wire = new(Wire)
	whole = planOf(reflect.TypeFor[Wire]()).read(&in, unsafe.Pointer(wire)) && len(in.data) == 0
	return wire, whole
}

// input is the unread rest of a part.
type input struct {
	data  []byte
	depth int
	words *[wordSlots]string
}

// The names of signals, quantities and actions are often the same in all groups. Equal short strings that were read
// recently therefore share memory, across all parts.
const (
	wordSlots   = 256
	longestWord = 32
)

var knownWords = sync.Pool{New: func() any { return new([wordSlots]string) }}

// word returns text as a string, which may share memory with an equal one.
func (in *input) word(text []byte) string {
	n := len(text)
	if n == 0 || n > longestWord {
		return string(text)
	}
	known := &in.words[(31*n+7*int(text[0])+3*int(text[n/2])+int(text[n-1]))%wordSlots]
	if *known != string(text) {
		*known = string(text)
	}
	return *known
}

// Lent is a slice of the part that it was read from. To retain it, copy it, because it would otherwise keep the whole
// checkpoint in memory. It must not be modified.
type Lent []byte

// deepest is the maximum nesting depth of lists and maps. The general decoder allows 32 levels.
const deepest = 30

// mostRoom limits the memory of a list to this multiple of the bytes that can contain its encoding. The general decoder
// instead first checks that all items of a list exist.
const mostRoom = 64

// room reports whether n items with the given size in memory may be allocated for the rest of a part.
func (in *input) room(n int, size uintptr) bool {
	return uint64(n)*uint64(size) <= mostRoom*uint64(len(in.data))
}

// enter begins a list or a map. The caller must decrement depth at its end.
func (in *input) enter() bool {
	in.depth++
	return in.depth <= deepest
}

// head reads the next head: the kind of the item, its first byte, and its number.
func (in *input) head() (kind, first byte, n uint64, ok bool) {
	if len(in.data) == 0 {
		return 0, 0, 0, false
	}
	first = in.data[0]
	size := 0
	switch low := first &^ itemKind; {
	case low < 24:
		in.data = in.data[1:]
		return first & itemKind, first, uint64(low), true
	case low < 28:
		size = 1 << (low - 24)
	}
	if size == 0 || len(in.data) <= size {
		return 0, 0, 0, false
	}
	switch number := in.data[1:]; size {
	case 1:
		n = uint64(number[0])
	case 2:
		n = uint64(binary.BigEndian.Uint16(number))
	case 4:
		n = uint64(binary.BigEndian.Uint32(number))
	default:
		n = binary.BigEndian.Uint64(number)
	}
	in.data = in.data[1+size:]
	return first & itemKind, first, n, true
}

// null reads a null if it comes next. The target is left unchanged, which means zero.
func (in *input) null() bool {
	if len(in.data) == 0 || in.data[0] != itemNull {
		return false
	}
	in.data = in.data[1:]
	return true
}

// counted reads the head of an item of the given kind whose number is a count of at least one byte per element.
func (in *input) counted(kind byte) (n int, ok bool) {
	got, _, number, ok := in.head()
	if !ok || got != kind || number > uint64(len(in.data)) {
		return 0, false
	}
	return int(number), true
}

// bytes reads the content of a string of the given kind.
func (in *input) bytes(kind byte) (content []byte, ok bool) {
	n, ok := in.counted(kind)
	if ok {
		content, in.data = in.data[:n], in.data[n:]
	}
	return content, ok
}

// First bytes and kinds of items that plans read, in addition to those in named.go.
const (
	itemNegative = 0x20
	itemBytes    = 0x40
	itemText     = 0x60
	itemMap      = 0xa0
	itemFalse    = 0xf4
	itemTrue     = 0xf5
	itemFloat32  = 0xfa
	itemFloat64  = 0xfb
)

// plans contains all plans by reflect.Type. makePlans must be held to create plans, because a plan may need that of a
// type that contains it.
var (
	plans     sync.Map
	makePlans sync.Mutex
)

func planOf(t reflect.Type) *plan {
	if p, has := plans.Load(t); has {
		return p.(*plan)
	}
	makePlans.Lock()
	defer makePlans.Unlock()
	made := map[reflect.Type]*plan{}
	p := makePlan(t, made)
	for of, p := range made {
		plans.LoadOrStore(of, p)
	}
	return p
}

// refused is the plan for types that the general decoder has to read.
func refused(*input, unsafe.Pointer) bool { return false }

var (
	binaryUnmarshaler = reflect.TypeFor[encoding.BinaryUnmarshaler]()
	cborUnmarshaler   = reflect.TypeFor[cbor.Unmarshaler]()
	timeType          = reflect.TypeFor[time.Time]()
	lentType          = reflect.TypeFor[Lent]()
)

// makePlan returns the plan for a type, and adds it and the plans for its parts to made.
func makePlan(t reflect.Type, made map[reflect.Type]*plan) *plan {
	if p, has := made[t]; has {
		return p
	}
	p := &plan{refused}
	made[t] = p // before its parts, which may contain the type
	switch {
	case t == timeType:
		p.read = readTime
	case reflect.PointerTo(t).Implements(cborUnmarshaler):
	case reflect.PointerTo(t).Implements(binaryUnmarshaler):
		p.read = readBinary(t)
	default:
		p.read = planOfKind(t, made)
	}
	return p
}

func planOfKind(t reflect.Type, made map[reflect.Type]*plan) func(*input, unsafe.Pointer) bool {
	switch t.Kind() {
	case reflect.Bool:
		return readBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return readInt(t.Size())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return readUint(t.Size())
	case reflect.Float32:
		return readFloat32
	case reflect.Float64:
		return readFloat64
	case reflect.String:
		return readString
	case reflect.Pointer:
		return readPointer(t.Elem(), made)
	case reflect.Slice:
		return readSlice(t, made)
	case reflect.Array:
		return readArray(t, made)
	case reflect.Map:
		return readMap(t, made)
	case reflect.Struct:
		return readStruct(t, made)
	}
	return refused
}

func readTime(in *input, into unsafe.Pointer) bool {
	if in.null() {
		return true
	}
	text, ok := in.bytes(itemText)
	if !ok {
		return false
	}
	t, err := time.Parse(time.RFC3339, string(text))
	*(*time.Time)(into) = t
	return err == nil
}

func readBinary(t reflect.Type) func(*input, unsafe.Pointer) bool {
	return func(in *input, into unsafe.Pointer) bool {
		if in.null() {
			return true
		}
		content, ok := in.bytes(itemBytes)
		if !ok {
			return false
		}
		u, is := reflect.NewAt(t, into).Interface().(encoding.BinaryUnmarshaler)
		return is && u.UnmarshalBinary(content) == nil
	}
}

func readBool(in *input, into unsafe.Pointer) bool {
	if in.null() {
		return true
	}
	_, first, _, ok := in.head()
	*(*bool)(into) = first == itemTrue
	return ok && (first == itemTrue || first == itemFalse)
}

func readInt(size uintptr) func(*input, unsafe.Pointer) bool {
	return func(in *input, into unsafe.Pointer) bool {
		if in.null() {
			return true
		}
		kind, _, n, ok := in.head()
		if !ok || kind > itemNegative || n > math.MaxInt64 {
			return false
		}
		x := int64(n)
		if kind == itemNegative {
			x = ^x
		}
		switch size {
		case 1:
			*(*int8)(into) = int8(x)
			return x == int64(int8(x))
		case 2:
			*(*int16)(into) = int16(x)
			return x == int64(int16(x))
		case 4:
			*(*int32)(into) = int32(x)
			return x == int64(int32(x))
		}
		*(*int64)(into) = x
		return true
	}
}

func readUint(size uintptr) func(*input, unsafe.Pointer) bool {
	return func(in *input, into unsafe.Pointer) bool {
		if in.null() {
			return true
		}
		kind, _, n, ok := in.head()
		if !ok || kind != itemNumber {
			return false
		}
		switch size {
		case 1:
			*(*uint8)(into) = uint8(n)
			return n <= math.MaxUint8
		case 2:
			*(*uint16)(into) = uint16(n)
			return n <= math.MaxUint16
		case 4:
			*(*uint32)(into) = uint32(n)
			return n <= math.MaxUint32
		}
		*(*uint64)(into) = n
		return true
	}
}

func readFloat64(in *input, into unsafe.Pointer) bool {
	if in.null() {
		return true
	}
	_, first, n, ok := in.head()
	*(*float64)(into) = math.Float64frombits(n)
	return ok && first == itemFloat64
}

// readFloat32 leaves NaN to the general decoder, which converts it to 64 bits and back.
func readFloat32(in *input, into unsafe.Pointer) bool {
	if in.null() {
		return true
	}
	_, first, n, ok := in.head()
	x := math.Float32frombits(uint32(n))
	*(*float32)(into) = x
	return ok && first == itemFloat32 && x == x //nolint:gocritic // not NaN
}

func readString(in *input, into unsafe.Pointer) bool {
	if in.null() {
		return true
	}
	text, ok := in.bytes(itemText)
	*(*string)(into) = in.word(text)
	return ok
}

func readPointer(to reflect.Type, made map[reflect.Type]*plan) func(*input, unsafe.Pointer) bool {
	if to.Kind() == reflect.Pointer {
		return refused
	}
	of := makePlan(to, made)
	return func(in *input, into unsafe.Pointer) bool {
		if in.null() {
			return true
		}
		target := reflect.New(to).UnsafePointer()
		*(*unsafe.Pointer)(into) = target
		return of.read(in, target)
	}
}

func readSlice(t reflect.Type, made map[reflect.Type]*plan) func(*input, unsafe.Pointer) bool {
	switch {
	case t == lentType:
		return readLent
	case t.Elem().Kind() == reflect.Uint8:
		return readBytes
	case t.Elem().Kind() == reflect.Pointer && t.Elem().Elem().Kind() != reflect.Pointer:
		return readPointers(t, made)
	}
	of, size := makePlan(t.Elem(), made), t.Elem().Size()
	return func(in *input, into unsafe.Pointer) bool {
		if in.null() {
			return true
		}
		n, ok := in.counted(itemList)
		if !ok || !in.room(n, size) {
			return false
		}
		slice := reflect.NewAt(t, into).Elem()
		if n == 0 {
			slice.Set(reflect.MakeSlice(t, 0, 0))
			return true
		}
		slice.Grow(n) // unlike MakeSlice, this does not allocate the slice header
		slice.SetLen(n)
		slice.SetCap(n)
		return of.readEach(in, slice.UnsafePointer(), n, size)
	}
}

// readPointers reads a list of pointers. Their targets are contiguous, in a single allocation.
func readPointers(t reflect.Type, made map[reflect.Type]*plan) func(*input, unsafe.Pointer) bool {
	to := t.Elem().Elem()
	of, size, targets := makePlan(to, made), to.Size(), reflect.SliceOf(to)
	return func(in *input, into unsafe.Pointer) bool {
		if in.null() {
			return true
		}
		n, ok := in.counted(itemList)
		if !ok || !in.room(n, size+unsafe.Sizeof(into)) || !in.enter() {
			return false
		}
		pointers := make([]unsafe.Pointer, n)
		*(*[]unsafe.Pointer)(into) = pointers
		first := reflect.MakeSlice(targets, n, n).UnsafePointer()
		for i := range pointers {
			if in.null() {
				continue
			}
			pointers[i] = unsafe.Add(first, uintptr(i)*size)
			if !of.read(in, pointers[i]) {
				return false
			}
		}
		in.depth--
		return true
	}
}

func readLent(in *input, into unsafe.Pointer) bool {
	if in.null() {
		return true
	}
	content, ok := in.bytes(itemBytes)
	*(*Lent)(into) = content[:len(content):len(content)]
	return ok
}

func readBytes(in *input, into unsafe.Pointer) bool {
	if in.null() {
		return true
	}
	content, ok := in.bytes(itemBytes)
	if !ok {
		return false
	}
	clone := make([]byte, len(content))
	copy(clone, content)
	*(*[]byte)(into) = clone
	return true
}

func readArray(t reflect.Type, made map[reflect.Type]*plan) func(*input, unsafe.Pointer) bool {
	if t.Elem().Kind() == reflect.Uint8 {
		return func(in *input, into unsafe.Pointer) bool {
			if in.null() {
				return true
			}
			content, ok := in.bytes(itemBytes)
			copy(unsafe.Slice((*byte)(into), t.Len()), content)
			return ok && len(content) == t.Len()
		}
	}
	of, size := makePlan(t.Elem(), made), t.Elem().Size()
	return func(in *input, into unsafe.Pointer) bool {
		if in.null() {
			return true
		}
		n, ok := in.counted(itemList)
		if !ok || n != t.Len() {
			return false
		}
		return of.readEach(in, into, n, size)
	}
}

// readEach reads the n items of a list. Each has the given size in memory.
func (p *plan) readEach(in *input, first unsafe.Pointer, n int, size uintptr) bool {
	if !in.enter() {
		return false
	}
	for i := range n {
		if !p.read(in, unsafe.Add(first, uintptr(i)*size)) {
			return false
		}
	}
	in.depth--
	return true
}

func readMap(t reflect.Type, made map[reflect.Type]*plan) func(*input, unsafe.Pointer) bool {
	keys, values, room := makePlan(t.Key(), made), makePlan(t.Elem(), made), t.Key().Size()+t.Elem().Size()
	return func(in *input, into unsafe.Pointer) bool {
		if in.null() {
			return true
		}
		n, ok := in.counted(itemMap)
		if !ok || !in.room(n, room) || !in.enter() {
			return false
		}
		m := reflect.MakeMapWithSize(t, n)
		reflect.NewAt(t, into).Elem().Set(m)
		key, value := reflect.New(t.Key()), reflect.New(t.Elem())
		for range n {
			key.Elem().SetZero()
			value.Elem().SetZero()
			if !keys.read(in, key.UnsafePointer()) || !values.read(in, value.UnsafePointer()) {
				return false
			}
			m.SetMapIndex(key.Elem(), value.Elem())
		}
		in.depth--
		return m.Len() == n // no key is repeated
	}
}

// plannedField is a field of a struct.
type plannedField struct {
	of *plan
	at uintptr
}

// mostFields is the exclusive upper limit of field numbers in a struct that has a plan.
const mostFields = 128

func readStruct(t reflect.Type, made map[reflect.Type]*plan) func(*input, unsafe.Pointer) bool {
	fields, ok := numberedFields(t, made)
	if !ok {
		return refused
	}
	return func(in *input, into unsafe.Pointer) bool {
		if in.null() {
			return true
		}
		n, ok := in.counted(itemMap)
		if !ok || !in.enter() {
			return false
		}
		var seen [mostFields / 64]uint64
		for range n {
			kind, _, number, ok := in.head()
			if !ok || kind != itemNumber || number >= uint64(len(fields)) || fields[number].of == nil {
				return false
			}
			if seen[number/64]&(1<<(number%64)) != 0 {
				return false
			}
			seen[number/64] |= 1 << (number % 64)
			if f := &fields[number]; !f.of.read(in, unsafe.Add(into, f.at)) {
				return false
			}
		}
		in.depth--
		return true
	}
}

// numberedFields returns the fields of a struct by number. It returns false unless all fields that are saved have one.
func numberedFields(t reflect.Type, made map[reflect.Type]*plan) (fields []plannedField, ok bool) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("cbor"), ",")
		if name == "-" && options == "" || !field.IsExported() && !field.Anonymous {
			continue
		}
		number, err := strconv.Atoi(name)
		keyed := strings.Contains(","+options+",", ",keyasint,")
		if err != nil || !keyed || field.Anonymous || number < 0 || number >= mostFields {
			return nil, false
		}
		for len(fields) <= number {
			fields = append(fields, plannedField{})
		}
		fields[number] = plannedField{makePlan(field.Type, made), field.Offset}
	}
	return fields, true
}
