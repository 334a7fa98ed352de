package admission

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Every token comes back from its printed form, which needs no quoting anywhere.
func TestTokensRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := Token{
			Epoch: rapid.Uint16().Draw(t, "epoch"), Index: rapid.Uint64().Draw(t, "index"),
			Position: rapid.Uint32().Draw(t, "position"), Nonce: rapid.Uint64().Draw(t, "nonce"),
		}
		printed := token.String()
		if len(printed) != 31 || strings.Trim(printed, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Fatalf("printed as %q", printed)
		}
		if back, err := ParseToken(printed); err != nil || back != token {
			t.Fatalf("%q is read as %+v, %v", printed, back, err)
		}
	})
}

// What is no token is an error; what is read prints as it was written.
func TestParseTokenRefusesGarbage(t *testing.T) {
	good := Token{Epoch: 1, Index: 2, Position: 3, Nonce: math.MaxUint64}.String()
	for what, s := range map[string]string{
		"nothing":           "",
		"short":             good[:30],
		"long":              good + "A",
		"padded":            good + "=",
		"another version":   "AgAAAAAAAAAAAAIAAAADAAAAAAAAAAA",
		"another alphabet":  good[:30] + "+",
		"a line break":      good[:15] + "\n" + good[15:30],
		"bits that are not": good[:30] + "9",
		"not ASCII":         good[:29] + "é",
	} {
		if token, err := ParseToken(s); err == nil {
			t.Errorf("%s: %q is read as %+v", what, s, token)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(Token{Index: 7, Position: 1, Nonce: 3}.String())
	f.Fuzz(func(t *testing.T, s string) {
		if token, err := ParseToken(s); err == nil && token.String() != s {
			t.Errorf("%q is read as %+v, which prints as %q", s, token, token.String())
		}
	})
}
