package gubernator

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func TestRequestSaysWhatItTakes(t *testing.T) {
	one := []byte("\x0a\x08requests\x12\x01t\x18\x01\x20\x80\x94\xeb\xdc\x03\x28\x80\xdd\xdb\x01")
	if got, want := request("t"), append([]byte{0x0a, byte(len(one))}, one...); !bytes.Equal(got, want) {
		t.Errorf("the request is %x, want %x", got, want)
	}
}

// answer is a GetRateLimitsResp of one RateLimitResp.
func answer(one []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), one)
}

func TestAnswersAreRead(t *testing.T) {
	limits := []byte("\x10\x64\x18\x63") // limit 100, remaining 99
	for _, test := range []struct {
		name   string
		answer []byte
		ok     bool
	}{
		{"under the limit", answer(limits), true},
		{"over it", answer(append([]byte("\x08\x01"), limits...)), false},
		{"an error", answer(append(limits, "\x2a\x02no"...)), false},
		{"cut off", answer(limits)[:3], false},
		{"nothing", nil, false},
	} {
		if err := granted(test.answer); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
