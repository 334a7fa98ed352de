package policy_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Every example of docs/policy.md can be applied, and together they have every field.
func TestThePolicyPageIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[protoreflect.FullName]bool{}
	for i, block := range yamlBlock.FindAllSubmatch(page, -1) {
		msg, core, err := policy.Load(fmt.Sprintf("example %d", i+1), block[1])
		if err != nil {
			t.Error(err)
			continue
		}
		op := admission.ApplyPolicy{Policy: core, ExpectedRevision: admission.AnyRevision}
		if res := admission.New().CheckPolicy(op); res.Err != nil || !res.Changed {
			t.Errorf("example %d is not applied: %+v", i+1, res)
		}
		noteFields(shown, msg.ProtoReflect())
		// false is no value of a field without presence: the file has it all the same.
		for _, key := range regexp.MustCompile(`(only|blocked): false`).FindAllStringSubmatch(string(block[1]), -1) {
			shown[protoreflect.FullName(map[string]string{
				"only": "admit.v1.Batch.only", "blocked": "admit.v1.BucketOverride.blocked",
			}[key[1]])] = true
		}
	}
	all := map[protoreflect.FullName]bool{}
	allFields(all, (&admitv1.Policy{}).ProtoReflect().Descriptor())
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !shown[name] {
			t.Errorf("no example has %s", name)
		}
	}
}

func noteFields(shown map[protoreflect.FullName]bool, m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		shown[f.FullName()] = true
		switch {
		case f.IsMap():
			v.Map().Range(func(_ protoreflect.MapKey, item protoreflect.Value) bool {
				if f.MapValue().Message() != nil {
					noteFields(shown, item.Message())
				}
				return true
			})
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				noteFields(shown, v.List().Get(i).Message())
			}
		case f.Message() != nil:
			noteFields(shown, v.Message())
		}
		return true
	})
}

func allFields(all map[protoreflect.FullName]bool, desc protoreflect.MessageDescriptor) {
	for i := range desc.Fields().Len() {
		f := desc.Fields().Get(i)
		if all[f.FullName()] {
			continue
		}
		all[f.FullName()] = true
		m := f.Message()
		if f.IsMap() {
			m = f.MapValue().Message()
		}
		if m != nil && m.FullName() != "google.protobuf.Duration" {
			allFields(all, m)
		}
	}
}
