package protobuf

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// imported returns the files that a schema registry provides without listing them as references.
func imported() map[string]string {
	return map[string]string{
		"confluent/meta.proto": `syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }`,
		"confluent/type/decimal.proto": `syntax = "proto3"; package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }`,
	}
}

// Compile compiles the text of a .proto file. Imports are looked up in others by name, except those of google.protobuf
// and Confluent.
func Compile(text string, others map[string]string) (protoreflect.FileDescriptor, error) {
	const name = "the schema" // no import has this name
	files := imported()
	maps.Copy(files, others)
	files[name] = text
	for _, file := range files {
		if nesting(file) > maxNesting {
			return nil, fmt.Errorf("compile the Protobuf schema: brackets are nested more than %d levels deep", maxNesting)
		}
	}
	compiler := protocompile.Compiler{MaxParallelism: 1, Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
		Accessor: func(path string) (io.ReadCloser, error) {
			text, ok := files[path]
			if !ok {
				return nil, fmt.Errorf("the schema does not reference %s", path)
			}
			return io.NopCloser(strings.NewReader(text)), nil
		},
	})}
	compiled, err := compiler.Compile(context.Background(), name)
	if err != nil {
		return nil, fmt.Errorf("compile the Protobuf schema: %w", err)
	}
	return compiled[0], nil
}

// maxNesting is the maximum nesting depth of brackets in a .proto file. Real schemas nest less deeply. The limit is
// needed because the memory of the compiler grows with the square of the depth of an option.
const maxNesting = 100

// nesting returns the nesting depth of brackets in a .proto file, outside of strings and comments.
func nesting(text string) (deepest int) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '{', '[', '(', '<':
			depth++
			deepest = max(deepest, depth)
		case '}', ']', ')', '>':
			depth--
		case '"', '\'':
			for i++; i < len(text) && text[i] != c && text[i] != '\n'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '/':
			i += comment(text[i:])
		}
	}
	return deepest
}

// comment returns the length of the comment at the beginning of text, without its last byte, or 0 if there is none.
func comment(text string) int {
	end := "\n"
	switch {
	case strings.HasPrefix(text, "/*"):
		end = "*/"
	case !strings.HasPrefix(text, "//"):
		return 0
	}
	_, rest, _ := strings.Cut(text[2:], end)
	return len(text) - len(rest) - 1
}
