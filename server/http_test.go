package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

// post asks over HTTP, as the page does.
func post(h http.Handler, method, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, method, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Over HTTP a read answers what it answers over gRPC.
func TestReadsOverHTTP(t *testing.T) {
	h, _ := startWithPolicy(t)
	handler := h.server.HTTP(nil)
	if _, err := h.Acquire(soon(t), &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", Category: "otp"}); err != nil {
		t.Fatal(err)
	}
	want, err := h.status.QueueHealth(soon(t), &admitv1.QueueHealthRequest{Pool: "email"})
	if err != nil {
		t.Fatal(err)
	}
	w := post(handler, admitv1.StatusService_QueueHealth_FullMethodName, `{"pool": "email"}`)
	var got admitv1.QueueHealthResponse
	if err := protojson.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || !proto.Equal(&got, want) {
		t.Errorf("got %d %s, %v, want %v", w.Code, w.Body, err, want)
	}
	for method := range shown { //unordered: each by itself
		body := `{}`
		if strings.Contains(method, "StatusService") && !strings.HasSuffix(method, "QueueHealth") {
			body = `{"pool": "email"}`
		}
		if strings.HasSuffix(method, "GetTenant") || strings.HasSuffix(method, "Explain") {
			body = `{"pool": "email", "tenant": "acme"}`
		}
		if w := post(handler, method, body); w.Code != http.StatusOK {
			t.Errorf("%s: got %d %s", method, w.Code, w.Body)
		}
		if _, err := answerOf(method); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	families, err := h.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := len(f.GetMetric()); f.GetName() == "admit_http_calls_total" && n != len(shown) {
			t.Errorf("%d methods are counted, want %d", n, len(shown))
		}
	}
}

func TestWhatIsRefusedOverHTTP(t *testing.T) {
	h, store := startWithPolicy(t)
	handler := h.server.HTTP(nil)
	for _, c := range []struct {
		name, method, body string
		want               int
		says               string
	}{
		{"what changes something", admitv1.AdmissionService_Acquire_FullMethodName, `{"pool": "email", "tenant": "acme"}`, 404, ""},
		{"a stream", admitv1.StatusService_WatchShedding_FullMethodName, `{"pool": "email"}`, 404, ""},
		{"no JSON", admitv1.StatusService_QueueHealth_FullMethodName, `{`, 400, "INVALID_FIELD"},
		{"an unknown field", admitv1.StatusService_QueueHealth_FullMethodName, `{"pol": "email"}`, 400, "INVALID_FIELD"},
		{"a long request", admitv1.StatusService_QueueHealth_FullMethodName, `{"pool": "` + strings.Repeat("x", maxHTTPRequest) + `"}`, 400, "too long"},
		{"no such pool", admitv1.StatusService_TopShed_FullMethodName, `{"pool": "nowhere"}`, 404, "POOL_NOT_FOUND"},
	} {
		if w := post(handler, c.method, c.body); w.Code != c.want || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: got %d %s", c.name, w.Code, w.Body)
		}
	}
	// What a form of another site can send.
	r := httptest.NewRequest(http.MethodPost, admitv1.StatusService_QueueHealth_FullMethodName, strings.NewReader(`{}`))
	r.Header.Set("Content-Type", "text/plain")
	w := httptest.NewRecorder()
	if handler.ServeHTTP(w, r); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("got %d for a form", w.Code)
	}
	// No more than so many at a time.
	calls := handler.(*httpCalls)
	for range maxHTTPCalls {
		calls.places <- struct{}{}
	}
	if w := post(handler, admitv1.StatusService_QueueHealth_FullMethodName, `{}`); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "OVERLOADED") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	for range maxHTTPCalls {
		<-calls.places
	}
	store.fail = raftstore.ErrNoQuorum
	if w := post(handler, admitv1.StatusService_QueueHealth_FullMethodName, `{}`); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "NO_QUORUM") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if w := post(handler, admitv1.StatusService_QueueHealth_FullMethodName, `{"stale": true}`); w.Code != http.StatusOK {
		t.Errorf("got %d %s for what the node has", w.Code, w.Body)
	}
}

// slowBody says nothing until it may end.
type slowBody struct{ asked, end chan struct{} }

func (b slowBody) Read([]byte) (int, error) {
	b.asked <- struct{}{}
	<-b.end
	return 0, io.EOF
}

// Who says slowly what he wants, and may be a stranger, keeps nobody else out.
func TestSlowRequestsTakeNoPlace(t *testing.T) {
	h, _ := startWithPolicy(t)
	handler := h.server.HTTP(nil)
	slow := slowBody{make(chan struct{}), make(chan struct{})}
	var all sync.WaitGroup
	for range maxHTTPCalls {
		r := httptest.NewRequest(http.MethodPost, admitv1.StatusService_QueueHealth_FullMethodName, slow)
		r.Header.Set("Content-Type", "application/json")
		all.Go(func() { handler.ServeHTTP(httptest.NewRecorder(), r) })
		<-slow.asked
	}
	if w := post(handler, admitv1.StatusService_QueueHealth_FullMethodName, `{}`); w.Code != http.StatusOK {
		t.Errorf("got %d %s beside slow requests", w.Code, w.Body)
	}
	close(slow.end)
	all.Wait()
}

// onlyToken knows one token.
type onlyToken string

func (o onlyToken) Identify(_ *tls.ConnectionState, token string) (Identity, bool) {
	return Identity{Name: "she"}, token == string(o)
}

// Where callers have to be known, the page's are asked like any other.
func TestHTTPShowsNothingToStrangers(t *testing.T) {
	h, _ := startWithPolicy(t)
	handler := h.server.HTTP(onlyToken("secret"))
	for header, want := range map[string]int{"": 401, "Bearer wrong": 401, "Bearer secret": 200, "secret": 401} {
		w := post(handler, admitv1.StatusService_QueueHealth_FullMethodName, `{}`, "Authorization", header)
		if w.Code != want || (want != 200) == strings.Contains(w.Body.String(), "email") {
			t.Errorf("%q: got %d %s", header, w.Code, w.Body)
		}
	}
	w := post(handler, admitv1.StatusService_QueueHealth_FullMethodName, `{}`, "Authorization", "Bearer secret", "Authorization", "Bearer secret")
	if w.Code != 401 {
		t.Errorf("two tokens: got %d", w.Code)
	}
}

// An answer that came encoded from the leader is shown like one of this node's.
func TestAnswersOfTheLeaderAreShown(t *testing.T) {
	data, err := proto.Marshal(&admitv1.GetPolicyResponse{Revision: 7})
	if err != nil {
		t.Fatal(err)
	}
	got, err := encodeJSON(admitv1.PolicyService_GetPolicy_FullMethodName, encoded(data))
	if err != nil || !strings.Contains(string(got), `"7"`) {
		t.Errorf("got %s, %v", got, err)
	}
	long := &admitv1.ListMembersResponse{NodeId: strings.Repeat("n", maxHTTPAnswer)}
	if _, err := encodeJSON("", long); fmt.Sprint(err) != errLongAnswer.Error() {
		t.Errorf("got %v for a long answer", err)
	}
}
