package policy

import (
	_ "embed"
	"slices"
)

//go:generate go test -run TestTheSchemaIsFresh -update .

//go:embed policy.schema.json
var schema []byte

// Schema returns the JSON Schema of policy files. It is made from policy.proto and knows
// what the shape of a message tells: keys, kinds of values, names of enums. Rules about
// numbers and about what refers to what are Load's.
func Schema() []byte { return slices.Clone(schema) }
