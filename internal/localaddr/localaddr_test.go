package localaddr

import (
	"net"
	"testing"
)

func TestFor(t *testing.T) {
	for _, c := range []struct{ listen, to, want string }{
		{"192.0.2.7:7421", "192.0.2.1:7421", "192.0.2.7:0"},
		{"192.0.2.7:7421", "other.example:7421", "192.0.2.7:0"},
		{"127.0.0.2:7421", "127.0.0.1:7421", "127.0.0.2:0"},
		{"127.0.0.1:7421", "192.0.2.1:7421", ""},
		{"127.0.0.1:7421", "other.example:7421", ""},
		{"192.0.2.7:7421", "[2001:db8::1]:7421", ""},
		{"[2001:db8::7]:7421", "192.0.2.1:7421", ""},
		{"[2001:db8::7]:7421", "[2001:db8::1]:7421", "[2001:db8::7]:0"},
		{"127.0.0.1:7421", "[::1]:7421", ""},
		{"0.0.0.0:7421", "192.0.2.1:7421", ""},
		{"[::]:7421", "192.0.2.1:7421", ""},
	} {
		listener, err := net.ResolveTCPAddr("tcp", c.listen)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if from := For(listener, c.to); from != nil {
			got = from.String()
		}
		if got != c.want {
			t.Errorf("%s dials %s from %q, want %q", c.listen, c.to, got, c.want)
		}
	}
	if from := For(&net.UnixAddr{Name: "socket"}, "127.0.0.1:7421"); from != nil {
		t.Errorf("who listens at no TCP address dials from %v", from)
	}
}
