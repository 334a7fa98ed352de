package server

import (
	"math"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// chance deals choices from a fuzzer's bytes, and zeros once they are used up.
type chance struct{ data []byte }

func (c *chance) of(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

// numbers and words are what matters to some rule: names that testPolicy has,
// the ends of ranges, and what lies just beyond.
var (
	numbers = []int64{0, 1, 2, 5, 10, 20, 999, 1000, 1001, -1, 1 << 31, 1<<31 + 1, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MinInt64}
	words   = []string{
		"email", "acme", "trial", "transactional", "marketing", "otp", "newsletter", "provider", "fair-use", "default", "a", "k/1:2",
		"", "a b", "ä", goodToken, strings.Repeat("x", 64), strings.Repeat("x", 128), strings.Repeat("x", 257),
	}
	secondsOf = []int64{0, 1, 60, 86400, 86401, 366 * 86400, 367 * 86400, -1, 253402300799, math.MaxInt64}
	nanosOf   = []int32{0, 1, 1e6, 999_999_999, -1}
)

// fill sets fields of a message by chance. lastToken is a token that is live.
func (c *chance) fill(m protoreflect.Message, lastToken string, depth int) {
	switch v := m.Interface().(type) {
	case *durationpb.Duration:
		v.Seconds, v.Nanos = secondsOf[c.of(len(secondsOf))], nanosOf[c.of(len(nanosOf))]
		return
	case *timestamppb.Timestamp:
		v.Seconds, v.Nanos = secondsOf[c.of(len(secondsOf))], nanosOf[c.of(len(nanosOf))]
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if c.of(4) == 3 { // most are set: an empty request is refused at once
			continue
		}
		switch {
		case f.IsMap():
			for range c.of(4) {
				entries := m.Mutable(f).Map()
				key := c.scalar(f.MapKey(), "").MapKey()
				if f.MapValue().Message() != nil {
					c.fill(entries.Mutable(key).Message(), "", depth-1)
				} else {
					entries.Set(key, c.scalar(f.MapValue(), ""))
				}
			}
		case f.IsList():
			for range c.of(4) + 1 {
				list := m.Mutable(f).List()
				if f.Message() == nil {
					list.Append(c.scalar(f, lastToken))
				} else if depth > 0 {
					c.fill(list.AppendMutable().Message(), lastToken, depth-1)
				}
			}
		case f.Message() != nil:
			if depth > 0 {
				c.fill(m.Mutable(f).Message(), lastToken, depth-1)
			}
		default:
			m.Set(f, c.scalar(f, lastToken))
		}
	}
}

func (c *chance) scalar(f protoreflect.FieldDescriptor, lastToken string) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		if strings.HasPrefix(string(f.Name()), "token") && lastToken != "" {
			return protoreflect.ValueOfString(lastToken)
		}
		// The pool and the tenant that there are come up often.
		if n := c.of(2 * len(words)); n < len(words) {
			return protoreflect.ValueOfString(words[n])
		}
		return protoreflect.ValueOfString(likely(string(f.Name())))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(c.of(2) == 1)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(c.of(8)))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(numbers[c.of(len(numbers))]))
	default:
		return protoreflect.ValueOfInt64(numbers[c.of(len(numbers))])
	}
}

// likely is a value that the field of that name may well have.
func likely(field string) string {
	switch field {
	case "pool", "name":
		return "email"
	case "lane", "lanes", "value":
		return "transactional"
	case "bucket":
		return "provider"
	case "category":
		return "otp"
	default:
		return "acme"
	}
}
