package policy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/admitd/admit/internal/policy"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

var update = flag.Bool("update", false, "write the schema as policy.proto has it now")

func TestTheSchemaIsFresh(t *testing.T) {
	source, err := os.ReadFile("../../proto/admit/v1/policy.proto")
	if err != nil {
		t.Fatal(err)
	}
	want := schemaOf(t, string(source))
	if *update {
		if err := os.WriteFile("policy.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(policy.Schema(), want) {
		t.Error("policy.schema.json is not what policy.proto gives: go generate ./internal/policy")
	}
}

// Files that load are of the schema, and those with another shape are not.
func TestTheSchemaTellsFilesApart(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(policy.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	good, err := filepath.Glob("testdata/valid/*.yaml")
	if err != nil || len(good) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range append(good, "../node/sample.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := misfit(t, root, string(text)); wrong != "" {
			t.Errorf("%s: %s", file, wrong)
		}
	}
	for _, text := range []string{
		"pool: []", "pools: {}", "pools: [{max_actve: 1}]", "pools: [{max_active: many}]", "pools: [{permit_ttl: 30}]",
		"pools: [{enforcement: NO}]", "pools: [{categories: {a: 1}}]", "pools: [{buckets: [{blocked: 1}]}]",
	} {
		if misfit(t, root, text) == "" {
			t.Errorf("%s fits", text)
		}
	}
}

func misfit(t *testing.T, root map[string]any, text string) string {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return fits(root, root, "", value)
}

// fits says why a value is not of a schema, or nothing. It knows the keywords that the
// schema uses.
func fits(root, schema map[string]any, at string, value any) string {
	if ref, ok := schema["$ref"].(string); ok {
		schema = root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	kinds, several := schema["type"].([]any)
	if !several {
		kinds = []any{schema["type"]}
	}
	switch v := value.(type) {
	case map[string]any:
		if !slices.Contains(kinds, any("object")) {
			return at + " is a mapping"
		}
		properties, _ := schema["properties"].(map[string]any)
		for key, item := range v {
			of, known := properties[key].(map[string]any)
			if !known {
				of, known = schema["additionalProperties"].(map[string]any)
			}
			if !known {
				return at + "." + key + " is not known"
			}
			if wrong := fits(root, of, at+"."+key, item); wrong != "" {
				return wrong
			}
		}
		return ""
	case []any:
		of, ok := schema["items"].(map[string]any)
		if !ok {
			return at + " is a list"
		}
		for i, item := range v {
			if wrong := fits(root, of, fmt.Sprintf("%s[%d]", at, i), item); wrong != "" {
				return wrong
			}
		}
		return ""
	case string:
		allowed, ok := schema["enum"].([]any)
		pattern, patterned := schema["pattern"].(string)
		if slices.Contains(kinds, any("string")) && (!ok || slices.Contains(allowed, any(v))) &&
			(!patterned || regexp.MustCompile(pattern).MatchString(v)) {
			return ""
		}
	case int:
		if slices.Contains(kinds, any("integer")) {
			return ""
		}
	case bool:
		if slices.Contains(kinds, any("boolean")) {
			return ""
		}
	}
	return fmt.Sprintf("%s is %v", at, value)
}

func schemaOf(t *testing.T, source string) []byte {
	t.Helper()
	g := generator{comments: commentsOf(source), defs: map[string]any{}}
	desc := (&admitv1.Policy{}).ProtoReflect().Descriptor()
	root := g.message(desc)
	root["$schema"], root["$defs"] = "https://json-schema.org/draft/2020-12/schema", g.defs
	root["title"] = "A policy of admit"
	data, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

// generator makes the schema of a message and of those that it has.
type generator struct {
	comments map[string]string
	defs     map[string]any
}

func (g *generator) message(desc protoreflect.MessageDescriptor) map[string]any {
	properties := map[string]any{}
	for i := range desc.Fields().Len() {
		f := desc.Fields().Get(i)
		p := g.field(f)
		p["description"] = g.comments[string(desc.Name())+"."+string(f.Name())]
		properties[string(f.Name())] = p
	}
	return map[string]any{
		"type": "object", "additionalProperties": false, "properties": properties, "description": g.comments[string(desc.Name())],
	}
}

func (g *generator) field(f protoreflect.FieldDescriptor) map[string]any {
	switch {
	case f.IsMap():
		return map[string]any{"type": "object", "additionalProperties": g.single(f.MapValue())}
	case f.IsList():
		return map[string]any{"type": "array", "items": g.single(f)}
	}
	return g.single(f)
}

func (g *generator) single(f protoreflect.FieldDescriptor) map[string]any {
	switch f.Kind() {
	case protoreflect.MessageKind:
		if f.Message().FullName() == "google.protobuf.Duration" {
			return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
		}
		name := string(f.Message().Name())
		if g.defs[name] == nil {
			g.defs[name] = true // so that it is made once
			g.defs[name] = g.message(f.Message())
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	case protoreflect.EnumKind:
		var names []string
		for i := 1; i < f.Enum().Values().Len(); i++ {
			names = append(names, string(f.Enum().Values().Get(i).Name()))
		}
		return map[string]any{"type": "string", "enum": names}
	case protoreflect.BoolKind:
		return map[string]any{"type": "boolean"}
	case protoreflect.StringKind:
		return map[string]any{"type": "string"}
	}
	return map[string]any{"type": "integer"}
}

var (
	opens  = regexp.MustCompile(`^(?:message|enum) (\w+) \{$`)
	fields = regexp.MustCompile(`^[\w.<>, ]+ (\w+) = \d+;$`)
)

// commentsOf returns the comments of a proto file by message, and by message and field.
func commentsOf(source string) map[string]string {
	comments := map[string]string{}
	var stack, said []string
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "//"); ok {
			said = append(said, strings.TrimSpace(text))
			continue
		}
		if m := opens.FindStringSubmatch(line); m != nil {
			stack = append(stack, m[1])
			comments[m[1]] = strings.Join(said, " ")
		} else if m := fields.FindStringSubmatch(line); m != nil && len(stack) > 0 {
			comments[stack[len(stack)-1]+"."+m[1]] = strings.Join(said, " ")
		} else if line == "}" && len(stack) > 0 {
			stack = stack[:len(stack)-1]
		}
		said = nil
	}
	return comments
}
