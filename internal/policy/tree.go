package policy

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const durationName = "google.protobuf.Duration"

// tree checks the shape of a file against a message: keys that don't exist or
// are given twice, and values of the wrong kind. On the way it learns where each
// field stands, so that a broken rule can be shown in the file.
type tree struct {
	nodes    map[string]*yaml.Node                       // by path key
	fields   map[*yaml.Node]protoreflect.FieldDescriptor // of scalars
	paths    map[*yaml.Node]path                         // of scalars
	broken   map[*yaml.Node]bool                         // reported already
	tainted  map[string]bool                             // path keys whose value is not known
	around   map[string]bool                             // path keys of what encloses those
	problems []Problem
}

func newTree(root *yaml.Node, desc protoreflect.MessageDescriptor) *tree {
	t := &tree{
		nodes:   map[string]*yaml.Node{},
		fields:  map[*yaml.Node]protoreflect.FieldDescriptor{},
		paths:   map[*yaml.Node]path{},
		broken:  map[*yaml.Node]bool{},
		tainted: map[string]bool{},
		around:  map[string]bool{},
	}
	t.message(path{}, root, desc)
	return t
}

func (t *tree) message(p path, node *yaml.Node, desc protoreflect.MessageDescriptor) {
	t.nodes[p.key] = node
	if node.Kind != yaml.MappingNode {
		t.report(p, node, "expected a mapping with %s, got %s", strings.Join(fieldNames(desc), ", "), Found(node))
		return
	}
	given := map[protoreflect.Name]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		field := findField(desc, key)
		if field == nil {
			t.unknown(p, key, desc)
			continue
		}
		at := p.field(string(field.Name()))
		if given[field.Name()] {
			t.report(at, key, "given twice")
			continue
		}
		given[field.Name()] = true
		t.value(at, value, field)
	}
}

func (t *tree) value(p path, node *yaml.Node, field protoreflect.FieldDescriptor) {
	t.nodes[p.key] = node
	switch {
	case field.IsMap():
		t.entries(p, node, field)
	case field.IsList():
		if node.Kind != yaml.SequenceNode {
			t.report(p, node, "expected a list, got %s", Found(node))
			return
		}
		for i, item := range node.Content {
			t.single(p.index(i), item, field)
		}
	default:
		t.single(p, node, field)
	}
}

func (t *tree) entries(p path, node *yaml.Node, field protoreflect.FieldDescriptor) {
	if node.Kind != yaml.MappingNode {
		t.report(p, node, "expected a mapping, got %s", Found(node))
		return
	}
	given := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		at := p.entry(key.Value)
		switch {
		case key.Kind != yaml.ScalarNode:
			t.report(p, key, "expected a name as key, got %s", Found(key))
		case given[key.Value]:
			t.report(at, key, "given twice")
		default:
			given[key.Value] = true
			t.single(at, value, field.MapValue())
		}
	}
}

// single checks a value that is neither a list nor a map.
func (t *tree) single(p path, node *yaml.Node, field protoreflect.FieldDescriptor) {
	t.nodes[p.key] = node
	if m := field.Message(); m != nil && m.FullName() != durationName {
		t.message(p, node, m)
		return
	}
	t.fields[node], t.paths[node] = field, p
	if node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		t.wrongValue(node)
	}
}

// wrongValue reports a scalar that its field can't take. What else a message
// needs may hang on a switch in it.
func (t *tree) wrongValue(node *yaml.Node) {
	if t.fields[node].Kind() == protoreflect.BoolKind {
		around, _ := parent(t.paths[node].key)
		t.taint(around)
	}
	t.report(t.paths[node], node, "expected %s, got %s", expected(t.fields[node]), Found(node))
}

func (t *tree) unknown(p path, key *yaml.Node, desc protoreflect.MessageDescriptor) {
	message, meant := Unknown("key", key.Value, fieldNames(desc))
	if key.Kind != yaml.ScalarNode {
		message = fmt.Sprintf("expected a key such as %s, got %s", fieldNames(desc)[0], Found(key))
	}
	t.problems = append(t.problems, Problem{
		Line: key.Line, Column: key.Column, Field: p.shown, Message: message, UnknownKey: key.Value,
	})
	if meant != "" {
		t.taint(p.field(meant).key)
	}
}

func (t *tree) report(p path, node *yaml.Node, format string, args ...any) {
	t.broken[node] = true
	t.taint(p.key)
	t.problems = append(t.problems, Problem{
		Line: node.Line, Column: node.Column, Field: p.shown, Message: fmt.Sprintf(format, args...),
	})
}

// nearest returns the node of a place, or of what encloses it where the file
// does not have it.
func (t *tree) nearest(key string) *yaml.Node {
	for {
		if node, ok := t.nodes[key]; ok {
			return node
		}
		key, _ = parent(key)
	}
}

// isValueOf says whether a node is the scalar of a field, so that what is wrong
// there is its value. In a map it may be the key.
func (t *tree) isValueOf(node *yaml.Node, key string) bool {
	field := t.fields[node]
	return field != nil && node == t.nodes[key] && !field.ContainingMessage().IsMapEntry()
}

func (t *tree) taint(key string) {
	t.tainted[key] = true
	if outer, ok := parent(key); ok {
		t.around[outer] = true
	}
}

// unsure says that a rule may seem broken at a place only because something
// there could not be read.
func (t *tree) unsure(key string) bool {
	if t.around[key] {
		return true
	}
	for outer, ok := key, true; ok; outer, ok = parent(outer) {
		if t.tainted[outer] || t.refers(outer, key[len(outer):]) {
			return true
		}
	}
	return false
}

// references names the list of a pool that holds what a field refers to.
var references = map[string]string{
	"leave_tokens": "buckets", "overrides": "buckets", "rules": "buckets", "categories": "lanes", "category": "categories",
}

// refers says whether a place, given by what encloses it and the rest of its
// path, refers to a list in there whose value is not known.
func (t *tree) refers(outer, place string) bool {
	for segment := range strings.SplitSeq(place, separator) {
		if to, ok := references[segment]; ok && t.tainted[outer+separator+to] {
			return true
		}
	}
	return strings.HasSuffix(place, separator+"lane") && t.tainted[outer+separator+"lanes"]
}

// findField finds a field by its name in the API or in its JSON form.
func findField(desc protoreflect.MessageDescriptor, key *yaml.Node) protoreflect.FieldDescriptor {
	if key.Kind != yaml.ScalarNode {
		return nil
	}
	if f := desc.Fields().ByTextName(key.Value); f != nil {
		return f
	}
	return desc.Fields().ByJSONName(key.Value)
}

func fieldNames(desc protoreflect.MessageDescriptor) []string {
	names := make([]string, desc.Fields().Len())
	for i := range names {
		names[i] = desc.Fields().Get(i).TextName()
	}
	return names
}

func expected(field protoreflect.FieldDescriptor) string {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return "a duration such as 30s or 1h30m"
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.EnumKind:
		values := field.Enum().Values()
		var names []string
		for i := 1; i < values.Len(); i++ {
			names = append(names, string(values.Get(i).Name()))
		}
		return strings.Join(names, " or ")
	case protoreflect.StringKind:
		return "a text"
	}
	return "a whole number"
}

// Found says in words what a node holds.
func Found(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias, which is not supported here"
	}
	if node.Tag == "!!null" {
		return "nothing"
	}
	const most = 60
	if len(node.Value) > most {
		return fmt.Sprintf("%.*q…", most, node.Value)
	}
	return fmt.Sprintf("%q", node.Value)
}
