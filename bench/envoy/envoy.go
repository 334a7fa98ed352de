// Package envoy asks as Envoy does whether requests may pass, and how true the answers
// stay while what holds the counters dies.
package envoy

import (
	"context"
	"errors"
	"fmt"
	"time"

	descriptors "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/admitd/admit/bench/system"
)

const (
	domain = "edge"
	// connections is how many the callers share.
	connections = 2
	// addresses is how many the requests come from, dealt out in turn.
	addresses = 100
	// patience is how long a call may take. It is more than Envoy's, so that an answer
	// that comes late is counted.
	patience = time.Second
)

// Targets say where a system takes calls, once it runs.
type Targets func() []string

// Requests opens callers that ask with two descriptors, one the same for all and one of
// their address, of which neither is ever over its limit.
func Requests(at Targets) system.Open {
	return func(context.Context, int) (system.Operation, error) {
		o := &requests{}
		for i := range addresses {
			o.asked = append(o.asked, request("generic_key", "site", "remote_address", fmt.Sprintf("10.0.0.%d", i)))
		}
		return o, o.dial(at())
	}
}

// limited opens callers that ask with one descriptor, which may be over its limit: then
// a call carries no request.
func limited(at Targets, key, value string) (*requests, error) {
	o := &requests{asked: []*ratelimit.RateLimitRequest{request(key, value)}, limited: true}
	return o, o.dial(at())
}

// request has a descriptor for each key and its value.
func request(entries ...string) *ratelimit.RateLimitRequest {
	r := &ratelimit.RateLimitRequest{Domain: domain}
	for i := 0; i < len(entries); i += 2 {
		r.Descriptors = append(r.Descriptors, &descriptors.RateLimitDescriptor{
			Entries: []*descriptors.RateLimitDescriptor_Entry{{Key: entries[i], Value: entries[i+1]}},
		})
	}
	return r
}

type requests struct {
	conns   []*grpc.ClientConn
	stubs   []ratelimit.RateLimitServiceClient
	asked   []*ratelimit.RateLimitRequest // the same for all: they are only read
	limited bool
}

func (o *requests) dial(addrs []string) error {
	for i := range connections {
		conn, err := system.Dial(addrs[i%len(addrs)])
		if err != nil {
			return errors.Join(err, o.Close())
		}
		o.conns = append(o.conns, conn)
		o.stubs = append(o.stubs, ratelimit.NewRateLimitServiceClient(conn))
	}
	return nil
}

func (o *requests) Do(ctx context.Context, caller int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	resp, err := o.stubs[caller%len(o.stubs)].ShouldRateLimit(ctx, o.asked[caller%len(o.asked)])
	if err != nil {
		return 0, err
	}
	passes, err := passed(resp)
	switch {
	case err != nil:
		return 0, err
	case passes:
		return 1, nil
	case o.limited:
		return 0, nil
	default:
		return 0, errors.New("over the limit where it is far")
	}
}

func (o *requests) Close() error {
	var all error
	for _, c := range o.conns {
		all = errors.Join(all, c.Close())
	}
	return all
}

// passed says whether the request may pass. One that no limit was found for would pass
// whatever becomes of the counters, so that this is an error.
func passed(resp *ratelimit.RateLimitResponse) (bool, error) {
	for _, s := range resp.GetStatuses() {
		if s.GetCurrentLimit() == nil {
			return false, errors.New("no limit for a descriptor")
		}
	}
	switch code := resp.GetOverallCode(); code {
	case ratelimit.RateLimitResponse_OK:
		return true, nil
	case ratelimit.RateLimitResponse_OVER_LIMIT:
		return false, nil
	default:
		return false, fmt.Errorf("the answer is %v", code)
	}
}
