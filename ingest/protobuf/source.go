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

// imported are the files that a schema registry provides without naming them as references.
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

// Compile compiles the text of a .proto file. Imports are found in others by their names, unless they are of
// google.protobuf or of Confluent.
func Compile(text string, others map[string]string) (protoreflect.FileDescriptor, error) {
	const name = "the schema" // no import has this name
	files := imported()
	maps.Copy(files, others)
	files[name] = text
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
