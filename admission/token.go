package admission

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
)

// Token names a permit. Index and Position are where in the log it was granted;
// Nonce keeps it from being guessed; Epoch tells permits of before a restore
// from backup.
type Token struct {
	Epoch    uint16
	Index    uint64
	Position uint32
	Nonce    uint64
}

const (
	tokenVersion = 1
	tokenBytes   = 1 + 2 + 8 + 4 + 8
)

// String returns the printable form, 31 characters safe in URLs and shells.
func (t Token) String() string {
	var b [tokenBytes]byte
	b[0] = tokenVersion
	binary.BigEndian.PutUint16(b[1:], t.Epoch)
	binary.BigEndian.PutUint64(b[3:], t.Index)
	binary.BigEndian.PutUint32(b[11:], t.Position)
	binary.BigEndian.PutUint64(b[15:], t.Nonce)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

var errToken = errors.New("not a permit's token")

// ParseToken reads the printable form.
func ParseToken(s string) (Token, error) {
	if len(s) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return Token{}, errToken
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != tokenBytes || b[0] != tokenVersion { // line breaks don't count in base64
		return Token{}, errToken
	}
	return Token{
		Epoch:    binary.BigEndian.Uint16(b[1:]),
		Index:    binary.BigEndian.Uint64(b[3:]),
		Position: binary.BigEndian.Uint32(b[11:]),
		Nonce:    binary.BigEndian.Uint64(b[15:]),
	}, nil
}
