package pipeline

import (
	"bytes"
	_ "embed" // for the schema
)

//go:embed pipeline.schema.json
var schemaText []byte

// Schema returns the JSON Schema (draft 2020-12) of a file, for editors. A file that extends another one may lack
// values that the schema requires within a section.
func Schema() []byte { return bytes.Clone(schemaText) }
