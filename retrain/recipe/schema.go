package recipe

import (
	"bytes"
	_ "embed" // for the schema
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// SchemaFile is the published name of the webhook schema.
const SchemaFile = "retrain-request.schema.json"

//go:embed retrain-request.schema.json
var schemaText []byte

// Schema returns the JSON Schema (draft 2020-12) of a webhook's body; that of the contract is its $defs/contract.
func Schema() []byte { return bytes.Clone(schemaText) }

// Validator checks bodies against the published schema.
type Validator struct{ compiled *jsonschema.Schema }

// NewValidator compiles the published schema.
func NewValidator() (Validator, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaText))
	if err != nil {
		return Validator{}, fmt.Errorf("read %s: %w", SchemaFile, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(SchemaFile, document); err != nil {
		return Validator{}, fmt.Errorf("read %s: %w", SchemaFile, err)
	}
	compiled, err := c.Compile(SchemaFile)
	if err != nil {
		return Validator{}, fmt.Errorf("compile %s: %w", SchemaFile, err)
	}
	return Validator{compiled}, nil
}

// ErrOffSchema is the class of errors for a body that must be neither stored nor sent.
var ErrOffSchema = errors.New("the request does not match " + SchemaFile)

// Check returns an ErrOffSchema if a body violates the schema.
func (v Validator) Check(body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOffSchema, err)
	}
	if err := v.compiled.Validate(value); err != nil {
		return fmt.Errorf("%w: %s", ErrOffSchema, inOneLine(err.Error()))
	}
	return nil
}

// inOneLine drops the headline of the validator's report.
func inOneLine(report string) string {
	_, found, _ := strings.Cut(report, "\n")
	return strings.Join(strings.Fields(strings.ReplaceAll(found, "\n", ";")), " ")
}
