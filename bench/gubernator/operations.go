package gubernator

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/admitd/admit/bench/system"
)

const (
	method  = "/pb.gubernator.V1/GetRateLimits"
	tenants = 100
	limit   = 1_000_000_000
	// duration is that of the limit, in milliseconds.
	duration    = 3_600_000
	connections = 2
)

// Tokens opens callers that each take a token from a tenant's bucket.
func (g *Gubernator) Tokens(context.Context, int) (system.Operation, error) {
	o := &tokens{}
	for i := range connections {
		conn, err := system.Dial(g.api[i], grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
		if err != nil {
			return nil, errors.Join(err, o.Close())
		}
		o.conns = append(o.conns, conn)
	}
	for i := range tenants {
		o.requests = append(o.requests, request(fmt.Sprintf("tenant-%03d", i)))
	}
	return o, nil
}

type tokens struct {
	conns    []*grpc.ClientConn
	requests [][]byte
}

func (o *tokens) Do(ctx context.Context, caller int) (int, error) {
	var answer []byte
	err := o.conns[caller%len(o.conns)].Invoke(ctx, method, o.requests[caller%tenants], &answer)
	if err != nil {
		return 0, err
	}
	return 1, granted(answer)
}

func (o *tokens) Close() error {
	var all error
	for _, c := range o.conns {
		all = errors.Join(all, c.Close())
	}
	return all
}

// request is a GetRateLimitsReq of one RateLimitReq. The fields that are written here
// stand in gubernator.proto; to import its package would bring all of the server.
func request(tenant string) []byte {
	one := protowire.AppendTag(nil, 1, protowire.BytesType)
	one = protowire.AppendString(one, "requests")
	one = protowire.AppendTag(one, 2, protowire.BytesType)
	one = protowire.AppendString(one, tenant)
	for field, v := range []uint64{3: 1, 4: limit, 5: duration} {
		if v != 0 {
			one = protowire.AppendTag(one, protowire.Number(field), protowire.VarintType)
			one = protowire.AppendVarint(one, v)
		}
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), one)
}

// granted reads a GetRateLimitsResp of one RateLimitResp, whose status is not there
// where the limit is not reached, and its error where there is none.
func granted(answer []byte) error {
	_, _, tag := protowire.ConsumeTag(answer)
	one, size := protowire.ConsumeBytes(answer[max(tag, 0):])
	if tag < 0 || size < 0 {
		return fmt.Errorf("not an answer: %x", answer)
	}
	for len(one) > 0 {
		field, _, n := protowire.ConsumeField(one)
		switch {
		case n < 0:
			return fmt.Errorf("not an answer: %x", answer)
		case field == 1:
			return errors.New("over the limit where it is far")
		case field == 5:
			return fmt.Errorf("refused: %q", one[:n])
		}
		one = one[n:]
	}
	return nil
}

// raw passes bytes on as they are.
type raw struct{}

var _ encoding.CodecV2 = raw{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
