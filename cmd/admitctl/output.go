package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	outputText = "text"
	outputJSON = "json"
	outputYAML = "yaml"
)

var outputFormats = []string{outputText, outputJSON, outputYAML}

// outputFlag is --output: one of the formats.
type outputFlag struct{ format *string }

func (f *outputFlag) String() string { return *f.format }

func (f *outputFlag) Type() string { return "format" }

func (f *outputFlag) Set(s string) error {
	if !slices.Contains(outputFormats, s) {
		return fmt.Errorf("expected one of %s", strings.Join(outputFormats, ", "))
	}
	*f.format = s
	return nil
}

// complete offers values for a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	offer := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, offer); err != nil {
		panic(err) // the flag does not exist: a slip in this program
	}
}

// print writes a message in the format asked for; text writes it as text.
func (a *app) print(m proto.Message, text func(w io.Writer)) error {
	switch a.output {
	case outputJSON:
		data, err := toJSON(m)
		if err != nil {
			return err
		}
		_, err = a.stdout.Write(data)
		return err
	case outputYAML:
		data, err := toYAML(m)
		if err != nil {
			return err
		}
		_, err = a.stdout.Write(data)
		return err
	}
	text(a.stdout)
	return nil
}

// toJSON writes a message by its API names, laid out the same each time;
// protojson alone varies its spaces.
func toJSON(m proto.Message) ([]byte, error) {
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// toYAML writes a message as toJSON does, but for whole numbers of 64 bits,
// which JSON needs quotes for.
func toYAML(m proto.Message) ([]byte, error) {
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	plain(doc.Content[0], m.ProtoReflect().Descriptor())
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(doc.Content[0]); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return out.Bytes(), nil
}

// plain takes JSON's brackets and quotes from the fields of a message.
func plain(node *yaml.Node, desc protoreflect.MessageDescriptor) {
	node.Style = 0
	for i := 0; i+1 < len(node.Content); i += 2 {
		node.Content[i].Style = 0
		if desc == nil {
			plainValue(node.Content[i+1], nil)
		} else {
			plainValue(node.Content[i+1], desc.Fields().ByName(protoreflect.Name(node.Content[i].Value)))
		}
	}
}

func plainValue(node *yaml.Node, field protoreflect.FieldDescriptor) {
	node.Style = 0
	if field != nil && field.IsMap() {
		for i := 0; i+1 < len(node.Content); i += 2 {
			node.Content[i].Style = 0
			plainValue(node.Content[i+1], field.MapValue())
		}
		return
	}
	switch node.Kind {
	case yaml.SequenceNode:
		for _, item := range node.Content {
			plainValue(item, field)
		}
	case yaml.MappingNode:
		if field != nil {
			plain(node, field.Message())
		}
	case yaml.ScalarNode:
		if field != nil && isInt64(field.Kind()) {
			node.Tag = "!!int"
		}
	}
}

func isInt64(k protoreflect.Kind) bool {
	return k == protoreflect.Int64Kind || k == protoreflect.Uint64Kind
}

// table writes rows under a head, in columns.
func table(w io.Writer, head string, rows func(row func(cells ...any))) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.ReplaceAll(head, " ", "\t"))
	rows(func(cells ...any) {
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = fmt.Sprint(c)
			if texts[i] == "" {
				texts[i] = "-"
			}
		}
		fmt.Fprintln(tw, strings.Join(texts, "\t"))
	})
	// Errors are those of w, which the caller's next write meets as well.
	_ = tw.Flush()
}

// short writes a duration without the zero units at its end; absent is empty.
func short(d *durationpb.Duration) string {
	if d == nil {
		return ""
	}
	s := d.AsDuration().String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// rough writes a duration that was measured, with three digits and rounded up, so that
// who waits for as long has waited enough; absent is empty.
func rough(d *durationpb.Duration) string {
	if d == nil {
		return ""
	}
	left, unit := d.AsDuration(), time.Duration(1)
	if left >= time.Minute {
		unit = time.Second
	} else {
		for left >= 1000*unit {
			unit *= 10
		}
	}
	if rest := left % unit; rest > 0 {
		left += unit - rest
	}
	return short(durationpb.New(left))
}

// moment writes a time; absent is empty.
func moment(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339Nano)
}
