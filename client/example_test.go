package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// send stands for a call of a provider with a rate limit.
func send(ctx context.Context, key string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://mail.example/send/"+key, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(req)
}

// A function that runs under a permit: when it is admitted, for as long as it
// takes, and with its error as the outcome.
func ExampleClient_Do() {
	c, err := client.Dial("127.0.0.1:7420")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	work := client.Work{Pool: "email", Tenant: "acme", Category: "otp"}
	err = c.Do(context.Background(), work, func(ctx context.Context, p *client.Permit) error {
		resp, err := send(ctx, "login-4711")
		if err != nil {
			return err // FAILED
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
			return client.Throttled{RetryAfter: time.Duration(seconds) * time.Second}
		}
		return nil // DONE
	})
	var shed *client.ShedError
	if errors.As(err, &shed) {
		fmt.Println("can't be admitted:", shed.Shed.GetReason())
	}
}

// A worker that handles what is due until the process is told to end.
func ExampleWorker() {
	c, err := client.Dial("127.0.0.1:7420")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()

	w := &client.Worker{
		Client: c, Pool: "email", Concurrency: 20, DrainTimeout: 20 * time.Second,
		Handler: func(ctx context.Context, claim *client.Claim) error {
			resp, err := send(ctx, claim.Key)
			if err != nil {
				return err // comes due again after a backoff
			}
			defer resp.Body.Close()
			switch {
			case resp.StatusCode == http.StatusTooManyRequests:
				return client.Throttled{} // stays due, and the bucket pauses
			case resp.StatusCode >= 400:
				return client.Dead{Err: errors.New(resp.Status)}
			}
			return nil
		},
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// Asking once: a refusal is an answer that says when to come back.
func ExampleClient_Acquire() {
	c, err := client.Dial("127.0.0.1:7420")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx := context.Background()
	d, err := c.Acquire(ctx, client.Work{Pool: "email", Tenant: "acme", Category: "newsletter", Cost: 3})
	switch {
	case err != nil:
		log.Fatal(err)
	case d.Permit == nil:
		fmt.Println("not now:", d.Shed.GetReason(), "come back after", d.Shed.GetRetryAfter().AsDuration())
	default:
		// ... work until d.Permit.StopBy() ...
		if _, err := c.Release(ctx, d.Permit.Token, client.Release{Outcome: admitv1.Outcome_OUTCOME_DONE}); err != nil {
			log.Fatal(err)
		}
	}
}

// A gateway asks for each request that it passes on: all of its goroutines share one
// stream.
func ExampleWithSession() {
	c, err := client.Dial("127.0.0.1:7420", client.WithSession())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	gateway := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		work := client.Work{Pool: "email", Tenant: r.Header.Get("Tenant"), MaxWait: time.Second}
		err := c.Do(r.Context(), work, func(ctx context.Context, _ *client.Permit) error {
			resp, err := send(ctx, r.URL.Path)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		})
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", gateway))
}
