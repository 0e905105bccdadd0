package retrain

import (
	"bytes"
	_ "embed" // for the schema
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// SchemaFile is the name under which the schema of webhooks is published.
const SchemaFile = "retrain-request.schema.json"

//go:embed retrain-request.schema.json
var schemaText []byte

// Schema gives the JSON Schema (draft 2020-12) of a webhook's body; that of the contract is its $defs/contract.
func Schema() []byte { return bytes.Clone(schemaText) }

// schema holds bodies against the published schema.
type schema struct{ compiled *jsonschema.Schema }

func newSchema() (schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaText))
	if err != nil {
		return schema{}, fmt.Errorf("read %s: %w", SchemaFile, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(SchemaFile, document); err != nil {
		return schema{}, fmt.Errorf("read %s: %w", SchemaFile, err)
	}
	compiled, err := c.Compile(SchemaFile)
	if err != nil {
		return schema{}, fmt.Errorf("compile %s: %w", SchemaFile, err)
	}
	return schema{compiled}, nil
}

// errOffSchema is the class of what is wrong with a body that must be neither kept nor sent.
var errOffSchema = errors.New("the order does not follow " + SchemaFile)

// check gives an errOffSchema where a body does not follow the schema.
func (s schema) check(body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", errOffSchema, err)
	}
	if err := s.compiled.Validate(value); err != nil {
		return fmt.Errorf("%w: %s", errOffSchema, inOneLine(err.Error()))
	}
	return nil
}

// inOneLine leaves out the headline of the validator's report.
func inOneLine(report string) string {
	_, found, _ := strings.Cut(report, "\n")
	return strings.Join(strings.Fields(strings.ReplaceAll(found, "\n", ";")), " ")
}
