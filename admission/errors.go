package admission

import "strconv"

// ErrorReason says why an operation could not be decided. Its text is the name
// that the API publishes.
type ErrorReason string

// The reasons.
const (
	InvalidField     ErrorReason = "INVALID_FIELD"
	UnknownCategory  ErrorReason = "UNKNOWN_CATEGORY"
	PolicyInvalid    ErrorReason = "POLICY_INVALID"
	PoolNotFound     ErrorReason = "POOL_NOT_FOUND"
	EntryNotFound    ErrorReason = "ENTRY_NOT_FOUND"
	TargetNotFound   ErrorReason = "TARGET_NOT_FOUND"
	UnknownTenant    ErrorReason = "UNKNOWN_TENANT"
	LimitReached     ErrorReason = "LIMIT_REACHED"
	RevisionConflict ErrorReason = "REVISION_CONFLICT"
	RevisionNotFound ErrorReason = "REVISION_NOT_FOUND"
	RequestMismatch  ErrorReason = "REQUEST_MISMATCH"
	InUse            ErrorReason = "IN_USE"
	StaleRequest     ErrorReason = "STALE_REQUEST"
	NotShared        ErrorReason = "NOT_SHARED"
)

// Error is why an operation could not be decided. It changed nothing.
type Error struct {
	Reason ErrorReason
	// Field is the request's field at fault, by its API name, or empty.
	Field string
	// Message says what is wrong, in words.
	Message string
	// Meta are facts that a program may want, as name and value in turn.
	Meta []string
}

// Error returns the message.
func (e *Error) Error() string { return string(e.Reason) + ": " + e.Message }

// Violation is one rule that a policy breaks.
type Violation struct {
	// Field is the path in the policy, for example `pools[0].buckets[1].name`.
	Field string
	// Message says what was expected.
	Message string
}

func poolNotFound(pool string) *Error {
	return &Error{Reason: PoolNotFound, Field: "pool", Message: "there is no such pool", Meta: []string{"pool", pool}}
}

func unknownCategory(pool, category string) *Error {
	return &Error{
		Reason: UnknownCategory, Field: "category", Message: "the pool maps no such category",
		Meta: []string{"pool", pool, "category", category},
	}
}

func unknownTenant(pool, tenant string) *Error {
	return &Error{
		Reason: UnknownTenant, Field: "tenant", Message: "the pool admits no tenant that it has no word of",
		Meta: []string{"pool", pool, "tenant", tenant},
	}
}

func notShared(pool, message string) *Error {
	return &Error{Reason: NotShared, Message: message, Meta: []string{"pool", pool}}
}

// limitReached says that one of the pool's limits has no room for what an
// operator wants.
func limitReached(pool, limit string, capacity int64) *Error {
	n := strconv.FormatInt(capacity, 10)
	return &Error{
		Reason: LimitReached, Message: limit + " of pool " + pool + " is " + n + ", and it is reached",
		Meta: []string{"pool", pool, "limit", limit, "capacity", n},
	}
}

func unknownCadence(pool, cadence string) *Error {
	return &Error{
		Reason: InvalidField, Field: "cadence", Message: "the pool has no such cadence",
		Meta: []string{"pool", pool, "cadence", cadence},
	}
}

func entryNotFound(pool, tenant, key string) *Error {
	return &Error{
		Reason: EntryNotFound, Field: "key", Message: "there is no such entry",
		Meta: []string{"pool", pool, "tenant", tenant, "key", key},
	}
}

// noLane is an error of a filter's field.
func noLane(field, pool, lane string) *Error {
	return &Error{
		Reason: InvalidField, Field: field, Message: "the pool has no such lane",
		Meta: []string{"pool", pool, "lane", lane},
	}
}

func unknownLane(pool, field, lane string) *Error {
	return &Error{
		Reason: InvalidField, Field: field, Message: "the pool has no such lane",
		Meta: []string{"pool", pool, "lane", lane},
	}
}

func staleRequest() *Error {
	return &Error{Reason: StaleRequest, Field: "issued_at", Message: "the request is older than what is remembered of requests"}
}

func requestMismatch() *Error {
	return &Error{Reason: RequestMismatch, Field: "request_id", Message: "the request_id was used for another request"}
}
