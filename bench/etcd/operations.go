package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/admitd/admit/bench/system"
)

const connections = 2

// value is as long as those of etcd's own benchmarks.
var value = strings.Repeat("v", 256)

type clients []*clientv3.Client

func (e *Etcd) dial() (clients, error) {
	var cs clients
	for range connections {
		c, err := dial(e.leader)
		if err != nil {
			return nil, errors.Join(err, cs.Close())
		}
		cs = append(cs, c)
	}
	return cs, nil
}

func (cs clients) of(caller int) *clientv3.Client { return cs[caller%len(cs)] }

func (cs clients) Close() error {
	var all error
	for _, c := range cs {
		all = errors.Join(all, c.Close())
	}
	return all
}

func keys(callers int) []string {
	all := make([]string, callers)
	for i := range all {
		all[i] = fmt.Sprintf("key-%04d", i)
	}
	return all
}

// Put opens callers that each put a value at a key of their own.
func (e *Etcd) Put(_ context.Context, callers int) (system.Operation, error) {
	cs, err := e.dial()
	return &put{cs, keys(callers)}, err
}

type put struct {
	clients
	keys []string
}

func (o *put) Do(ctx context.Context, caller int) (int, error) {
	_, err := o.of(caller).Put(ctx, o.keys[caller], value)
	return 1, err
}

// Swap opens callers that each put a value at a key of their own if nobody else has
// since they did: the least that a permit takes in etcd.
func (e *Etcd) Swap(ctx context.Context, callers int) (system.Operation, error) {
	cs, err := e.dial()
	if err != nil {
		return nil, err
	}
	o := &swap{put{cs, keys(callers)}, make([]int64, callers)}
	for i, key := range o.keys {
		resp, err := cs.of(i).Put(ctx, key, value)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("put the first value: %w", err), cs.Close())
		}
		o.revisions[i] = resp.Header.Revision
	}
	return o, nil
}

type swap struct {
	put
	revisions []int64 // each caller's last
}

func (o *swap) Do(ctx context.Context, caller int) (int, error) {
	key := o.keys[caller]
	resp, err := o.of(caller).Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", o.revisions[caller])).
		Then(clientv3.OpPut(key, value)).
		Commit()
	if err != nil {
		return 0, err
	}
	if !resp.Succeeded {
		return 0, fmt.Errorf("%s was changed by another", key)
	}
	o.revisions[caller] = resp.Header.Revision
	return 1, nil
}
